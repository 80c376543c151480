"""A page that is watched in a browser of this machine, and what it streams.

It answers on 127.0.0.1 only, at an address with a secret that is new each time; a request for
another host is refused, so that no page of the web can reach it under a name of its own. The page
is one file, fetches nothing from elsewhere, and hears of what happens by server-sent events: a
whole picture first, then what is new. It runs in a thread of its own; any may call `publish`.

    with LivePage("node", first=picture) as page:
        print(page.address)
        page.publish({"updates": 7})
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from importlib.resources import files
from typing import Any, Self

from walklearn.extras import extra

with extra("web", "the page needs"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

Message = Mapping[str, Any]
Action = Callable[[Any], None]
# A browser that has not read so many messages begins anew with the whole picture.
_MAX_WAITING = 200
_START_SECONDS = 30.0
_END_SECONDS = 5.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """A page on loopback, and its server.

    template: the page's name among the templates. first: the whole picture, for a browser that
    comes now. actions: what its buttons do, by name. port: 0 for one that is free.
    """

    def __init__(
        self,
        template: str,
        first: Callable[[], Message],
        actions: Mapping[str, Action] | None = None,
        port: int = 0,
    ) -> None:
        self.opened = threading.Event()  # some browser has asked for events
        self._first, self._actions = first, dict(actions or {})
        self._secret, self._nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(12)
        self._content = _assembled(template, self._nonce)
        self._clients: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runs = threading.Event()
        self._socket = _listen(port)
        config = uvicorn.Config(
            self._application(), log_config=None, access_log=False, server_header=False,
            lifespan="on", timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        run = {"sockets": [self._socket]}
        self._thread = threading.Thread(target=self._server.run, kwargs=run, daemon=True)

    @property
    def address(self) -> str:
        """Where to look; whoever knows it may look, and press the buttons."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/{self._secret}/"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._runs.wait(_START_SECONDS):
            raise OSError("the page's server does not start.")
        return self

    def __exit__(self, *error: object) -> None:
        self._tell(None)
        self._server.should_exit = True
        self._thread.join(_END_SECONDS)
        self._socket.close()

    def publish(self, message: Message) -> None:
        """Tell every browser that looks."""
        self._tell(_event(message))

    def _tell(self, text: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._spread, text)

    def _spread(self, text: str | None) -> None:
        for queue in list(self._clients):
            is_late = queue.qsize() >= _MAX_WAITING
            if is_late:
                self._clients.discard(queue)
            queue.put_nowait(None if is_late else text)

    # ── what is answered ─────────────────────────────────────────────────────────────────────

    def _application(self) -> Any:
        @contextlib.asynccontextmanager
        async def life(_: Starlette) -> AsyncIterator[None]:
            self._loop = asyncio.get_running_loop()
            self._runs.set()
            yield

        routes = [
            Route(f"/{self._secret}/", self._page),
            Route(f"/{self._secret}/events", self._events),
            Route(f"/{self._secret}/do/{{action}}", self._act, methods=["POST"]),
        ]
        hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
        return Starlette(routes=routes, middleware=[hosts], lifespan=life)

    async def _page(self, _: Request) -> Response:
        allowed = (
            "default-src 'none'; "
            f"script-src 'nonce-{self._nonce}'; style-src 'nonce-{self._nonce}'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        headers = {**_HEADERS, "Content-Security-Policy": allowed}
        return HTMLResponse(self._content, headers=headers)

    async def _events(self, _: Request) -> Response:
        queue: asyncio.Queue[str | None] = asyncio.Queue()

        async def stream() -> AsyncIterator[str]:
            self._clients.add(queue)
            self.opened.set()
            try:
                yield _event({"first": dict(self._first())})
                while (text := await queue.get()) is not None:
                    yield text
            finally:
                self._clients.discard(queue)

        return StreamingResponse(stream(), media_type="text/event-stream", headers=_HEADERS)

    async def _act(self, request: Request) -> Response:
        action = self._actions.get(request.path_params["action"])
        if action is None:
            return JSONResponse({"error": "there is no such button"}, 404, _HEADERS)
        try:
            await run_in_threadpool(action, await request.json())
        except (ValueError, TypeError, LookupError, OSError) as error:
            return JSONResponse({"error": str(error)}, 400, _HEADERS)
        return JSONResponse({}, headers=_HEADERS)


def _event(message: Message) -> str:
    return f"data: {json.dumps(message, allow_nan=False)}\n\n"


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise OSError(
            f"cannot show a page on 127.0.0.1:{port}: {error.strerror}. Choose another port."
        ) from None
    return listening


def _assembled(name: str, nonce: str) -> str:
    """The page as one file: its own template and script with the style and charts of all."""
    folder = files("walklearn.node.process") / "templates"

    def text(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8")

    content = text(f"{name}.html")
    scripts = text("charts.js") + text(f"{name}.js")
    style = (files("walklearn.plots") / "pages.css").read_text(encoding="utf-8") + text("live.css")
    for mark, part in (("style", style), ("script", scripts), ("nonce", nonce)):
        content = content.replace("{{" + mark + "}}", part)
    return content
