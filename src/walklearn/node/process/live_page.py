"""A page that is watched in a browser of this machine, and what it streams.

It answers on 127.0.0.1 only, at an address with a secret that is new each time; a request for
another host is refused, so that no page of the web can reach it under a name of its own. The page
is one file, fetches nothing from elsewhere, and hears of what happens by server-sent events: a
whole picture first, then what is new. Threads serve it; any thread may call `publish`.

    with LivePage("node", first=picture) as page:
        print(page.address)
        page.publish({"updates": 7})
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from queue import SimpleQueue
from typing import Any, Self

Message = Mapping[str, Any]
Action = Callable[[Any], None]
# A browser that has not read so many messages begins anew with the whole picture.
_MAX_WAITING = 200
_MAX_BODY = 10_000  # bytes of what a button sends
_TIMEOUT_SECONDS = 20.0


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
        self.is_closed = False
        self.first = first
        self.actions = {f"do/{name}": action for name, action in (actions or {}).items()}
        self.path = f"/{secrets.token_urlsafe(24)}/"
        nonce = secrets.token_urlsafe(12)
        self.content = _assembled(template, nonce).encode()
        self.headers = {
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": (
                f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
                "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            ),
        }
        self.browsers: set[SimpleQueue[str | None]] = set()
        handler = type("Handler", (_Handler,), {"page": self})
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            raise OSError(
                f"cannot show a page on 127.0.0.1:{port}: {error.strerror}. Choose another port."
            ) from None

    @property
    def address(self) -> str:
        """Address of the page. Everybody who knows it can view the page and press its buttons."""
        return f"http://127.0.0.1:{self._server.server_port}{self.path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_closed = True
        for browser in list(self.browsers):
            browser.put(None)
        self._server.shutdown()
        self._server.server_close()

    def publish(self, message: Message) -> None:
        """Send a message to every browser."""
        text = _event(message)
        for browser in list(self.browsers):
            is_late = browser.qsize() >= _MAX_WAITING
            if is_late:
                self.browsers.discard(browser)
            browser.put(None if is_late else text)


class _Handler(BaseHTTPRequestHandler):
    page: LivePage
    timeout = _TIMEOUT_SECONDS  # for each read and each write

    def do_GET(self) -> None:
        """Send the page, or its events for as long as the browser reads them."""
        place = self._place()
        if place == "":
            self._answer(200, self.page.content, "text/html; charset=utf-8")
        elif place == "events":
            self._stream()
        elif place is not None:
            self._refuse(404, "there is no such page")

    def do_POST(self) -> None:
        """Do the action of a button."""
        place = self._place()
        if place is None:
            return
        action = self.page.actions.get(place)
        if action is None:
            self._refuse(404, "there is no such button")
        elif (body := self._body()) is not None:
            try:
                action(json.loads(body))
            except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
                self._refuse(400, "the body is not JSON")
            except (ValueError, TypeError, LookupError, OSError) as error:
                self._refuse(400, str(error))
            else:
                self._answer(200, b"{}")

    def _body(self) -> bytes | None:
        """Return the body of the request; None if it was refused."""
        length = self.headers.get("Content-Length", "")
        size = int(length) if re.fullmatch("[0-9]{1,18}", length) else -1
        if size < 0:
            self._refuse(411, "the request needs a Content-Length in bytes")
            return None
        try:
            # Some of a body that is too large is read too: a reset would hide the answer.
            body = self.rfile.read(min(size, 100 * _MAX_BODY))
        except OSError:
            body = b""
        if size > _MAX_BODY:
            self._refuse(413, f"the body has {size} bytes; at most {_MAX_BODY} bytes are allowed")
        elif len(body) < size:
            self._refuse(400, f"the body ended after {len(body)} of {size} bytes")
        else:
            return body
        return None

    def _place(self) -> str | None:
        """Return the path behind the secret; None if the request was refused."""
        if self.headers.get("Host", "").partition(":")[0] not in ("127.0.0.1", "localhost"):
            self._refuse(400, "this is another host")
        elif not secrets.compare_digest(
            self.path[: len(self.page.path)].encode(), self.page.path.encode()
        ):
            self._refuse(404, "there is no such page")
        else:
            return self.path.removeprefix(self.page.path)
        return None

    def _stream(self) -> None:
        page, messages = self.page, SimpleQueue[str | None]()
        page.browsers.add(messages)
        page.opened.set()
        try:
            first = _event({"first": dict(page.first())})
            self._answer(200, first.encode(), "text/event-stream")
            while not page.is_closed and (text := messages.get()) is not None:
                self.wfile.write(text.encode())
        except OSError:  # the browser has gone
            pass
        finally:
            page.browsers.discard(messages)

    def _refuse(self, status: int, error: str) -> None:
        self._answer(status, json.dumps({"error": error}).encode())

    def _answer(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **self.page.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _event(message: Message) -> str:
    return f"data: {json.dumps(message, allow_nan=False)}\n\n"


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
