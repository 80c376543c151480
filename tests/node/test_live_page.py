"""Pages of a node and of a network, in a browser and as an attacker would ask for them."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.node.made_tokens import made_token
from tests.node.small_network import make_nodes, ring
from tests.running import WALKLEARN, started, wait_until
from walklearn import graphs
from walklearn.node.agreement.plan import Plan
from walklearn.node.process.live_page import LivePage
from walklearn.node.process.node_page import Validation
from walklearn.node.protocol.tokens import Line
from walklearn.node.trial.local_network import LocalNetwork
from walklearn.node.trial.two_gaussians import Trial
from walklearn.node.trial.view import NetworkView

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def asked(page: LivePage, path: str = "", host: str | None = None, **request: Any) -> Any:
    """What the server answers: (status, headers, the first line)."""
    parts = urlsplit(page.address)
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 0, timeout=30)
    headers = {} if host is None else {"Host": host}
    where = path if path.startswith("/") else parts.path + path
    connection.request(request.pop("method", "GET"), where, headers=headers, **request)
    answer = connection.getresponse()
    line = answer.readline().decode()
    connection.close()
    return answer.status, answer.headers, line


def test_only_who_knows_the_address_is_answered() -> None:
    done: list[int] = []

    def act(number: int) -> None:
        if number > 1:
            raise ValueError("there is no such node.")
        done.append(number)

    with LivePage("network", lambda: {"names": ["a"]}, {"kill": act}) as page:
        status, headers, line = asked(page)
        assert (status, line) == (200, "<!doctype html>\n")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert asked(page, "/")[0] == 404
        assert asked(page, "/guess/events")[0] == 404
        port = urlsplit(page.address).port
        for foreign in ("evil.example", f"evil.example:{port}", "192.0.2.1"):
            assert asked(page, host=foreign)[0] == 400
            assert asked(page, "do/kill", foreign, method="POST", body="0")[0] == 400
        assert asked(page, host=f"localhost:{port}")[0] == 200
        assert json.loads(asked(page, "events")[2].removeprefix("data: ")) == {
            "first": {"names": ["a"]}
        }
        assert asked(page, "do/kill")[0] == 404
        assert asked(page, "do/nothing", method="POST", body="0")[0] == 404
        assert asked(page, "do/kill", method="POST", body="7")[0] == 400
        assert asked(page, "do/kill", method="POST", body="not JSON")[0] == 400
        assert asked(page, "do/kill", method="POST", body="1")[0] == 200
    assert done == [1]


def raw(page: LivePage, content: bytes) -> socket.socket:
    """A connection that has sent these bytes to the page's server."""
    parts = urlsplit(page.address)
    connection = socket.create_connection((str(parts.hostname), parts.port or 0), timeout=30)
    connection.sendall(content)
    return connection


def post(page: LivePage, headers: str, body: bytes = b"") -> bytes:
    """Status line and error for a POST to the button 'kill' with these headers."""
    path = urlsplit(page.address).path + "do/kill"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"
    with raw(page, head.encode() + body) as connection:
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    ("headers", "body", "status", "error"),
    [
        ("", b"0", 411, b"Content-Length"),
        ("Content-Length: -1\r\n", b"0", 411, b"Content-Length"),
        ("Content-Length: one\r\n", b"0", 411, b"Content-Length"),
        ("Content-Length: 1_0\r\n", b"0" * 10, 411, b"Content-Length"),
        ("Transfer-Encoding: chunked\r\n", b"1\r\n0\r\n0\r\n\r\n", 411, b"Content-Length"),
        ("Content-Length: 3\r\n", b"0", 400, b"1 of 3 bytes"),
        ("Content-Length: 1\r\n", b"{", 400, b"JSON"),
        ("Content-Length: 1\r\n", b"\xff", 400, b"JSON"),
        ("Content-Length: 9000\r\n", b"[" * 9000, 400, b"JSON"),
        ("Content-Length: 90000\r\n", b"0" + b" " * 89_999, 413, b"10000 bytes"),
        ("Content-Length: 99999999999\r\n", b"0", 413, b"10000 bytes"),
    ],
)
def test_a_button_takes_only_a_whole_short_json_body(
    headers: str, body: bytes, status: int, error: bytes
) -> None:
    pressed: list[Any] = []
    with LivePage("network", dict, {"kill": pressed.append}) as page:
        answer = post(page, headers, body)
        assert answer.startswith(b"HTTP/1.0 %d " % status)
        assert error in answer.splitlines()[-1]
    assert pressed == []


def test_a_post_to_the_page_is_answered() -> None:
    with LivePage("network", dict, {"kill": print}) as page:
        assert asked(page, "", method="POST", body="0")[0] == 404
        assert asked(page, "kill", method="POST", body="0")[0] == 404


@pytest.mark.parametrize("content", [b"", b"GET / HTTP/1.1\r\nHost: local"])
def test_who_sends_no_request_is_cut_off(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walklearn.node.process.live_page._Handler.timeout", 0.1)
    with LivePage("node", dict) as page, raw(page, content) as connection:
        assert connection.recv(1) == b""


def test_who_does_not_send_its_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walklearn.node.process.live_page._Handler.timeout", 0.1)
    with LivePage("node", dict, {"do": print}) as page:
        path = urlsplit(page.address).path + "do/do"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n"
        with raw(page, head.encode()) as connection:
            assert connection.recv(20).startswith(b"HTTP/1.0 400 ")


def events(page: LivePage) -> http.client.HTTPResponse:
    """The stream of events, after the whole picture was read."""
    parts = urlsplit(page.address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port or 0, timeout=30)
    connection.request("GET", parts.path + "events")
    answer = connection.getresponse()
    assert answer.readline().startswith(b'data: {"first"')
    return answer


def test_the_end_of_the_server_ends_the_events() -> None:
    with LivePage("node", dict) as page:
        answer = events(page)
        page.publish({"updates": 7})
        assert answer.readline() == b"\n"
        assert json.loads(answer.readline().removeprefix(b"data: ")) == {"updates": 7}
    assert answer.read() == b"\n"
    wait_until(lambda: not page.browsers, "the end of the stream")
    page.publish({"updates": 8})  # does no harm


def test_who_asks_for_events_as_the_server_ends_is_not_kept() -> None:
    with LivePage("node", dict) as page:
        path = urlsplit(page.address).path + "events"
        connection = raw(page, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode())
        wait_until(lambda: bool(threads_of_requests()), "the request")
    with connection:
        connection.sendall(b"\r\n")
        assert b"".join(iter(lambda: connection.recv(65536), b"")).endswith(b"\n\n")
    assert page.browsers == set()


def test_a_browser_that_does_not_read_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walklearn.node.process.live_page._Handler.timeout", 0.2)
    with LivePage("node", dict) as page:
        answer = events(page)
        for _ in range(300):
            page.publish({"text": "x" * 100_000})
        assert page.browsers == set()
        wait_until(lambda: not threads_of_requests(), "the end of its thread")
        answer.close()


def threads_of_requests() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if "process_request" in each.name]


def test_buttons_are_for_nodes_that_are_there_and_do_what_can_be_done(tmp_path: Path) -> None:
    trial = Trial.draw(graphs.complete(2), "uniform", 10, None, 1)
    network = LocalNetwork.create(tmp_path / "nodes", trial.plan, trial.graph, trial.rows())
    view = NetworkView(network, trial, "a pair")
    with view.page:
        for wrong in ("true", "2", "-1", "0.0", '"0"', "[0]"):
            status, _, line = asked(view.page, "do/kill", method="POST", body=wrong)
            assert (status, "no node" in line) == (400, True), wrong
        status, _, line = asked(view.page, "do/start", method="POST", body="0")
        assert (status, json.loads(line)) == (400, {"error": "node-0 runs."})
        first = json.loads(asked(view.page, "events")[2].removeprefix("data: "))["first"]
        assert first["events"] == []


def test_two_pages_have_two_addresses_and_a_taken_port_is_told() -> None:
    with LivePage("node", dict) as one, LivePage("node", dict) as other:
        port = urlsplit(one.address).port
        assert urlsplit(one.address).path != urlsplit(other.address).path
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            LivePage("node", dict, port=port or 0)


@contextmanager
def shown(*command: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that shows a page, and the page's address."""
    with started(*WALKLEARN, *command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = (re.search(r"http://\S+", line) for line in process.stdout)
        yield process, next(match[0] for match in found if match)
        process.send_signal(signal.SIGINT)
        process.wait(60)


def text(chrome: Chrome, id: str) -> str:
    return str(chrome.find_element("id", id).text)


def test_a_network_is_watched_killed_and_healed_in_a_browser(
    tmp_path: Path, chrome: Chrome
) -> None:
    options = ("--nodes", 4, "--graph", "ring", "--updates", 1500, "--out", tmp_path / "network")
    with shown("up", "--view", *options) as (process, address):
        chrome.get(address)
        wait_until(lambda: text(chrome, "up") == "4 of 4")
        chrome.find_element("id", "button-2").click()
        wait_until(lambda: text(chrome, "phase-2") == "killed", "the end of node 2")
        assert text(chrome, "up") == "3 of 4"
        assert "node-2 was killed" in text(chrome, "events")
        chrome.find_element("id", "button-2").click()
        wait_until(lambda: text(chrome, "phase-2") == "up", "its return")
        wait_until(lambda: text(chrome, "finished") == "4 of 4", "the final model everywhere")
        wait_until(lambda: text(chrome, "state") == "finished")
        assert text(chrome, "updates") == "1,500 of 1,500"
        made = [int(text(chrome, f"made-{node}").replace(",", "")) for node in range(4)]
        events = text(chrome, "events")
        assert events.count("the walk begins") == 1
        # Each update is counted once; a new generation repeats those that its copy lacks.
        assert sum(made) == 1500 or (sum(made) > 1500 and "new generation" in events)
        for chart in ("by-updates", "by-messages"):
            assert chrome.find_elements("css selector", f"#{chart} .curve")
        assert len(chrome.find_elements("css selector", "#visits .bar")) == 4
        assert fits_a_phone(chrome)
        # Before, it draws: a Ctrl-C in the middle of that may be swallowed by who is called back.
        assert process.stdout is not None
        assert any("until Ctrl-C" in line for line in process.stdout)
    assert process.returncode == 130
    assert [line for line in chrome.get_log("browser") if "events" not in line["message"]] == []


def fits_a_phone(chrome: Chrome) -> bool:
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    width = chrome.execute_script("return document.documentElement.scrollWidth")
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return bool(width <= 390)


def test_a_node_shows_what_it_knows_and_no_more(tmp_path: Path, chrome: Chrome) -> None:
    one, _ = make_nodes(tmp_path, 2, ring(2)[:1], updates=100)
    public = tmp_path / "public.csv"
    public.write_text("a,b,y\n1,2,yes\n-1,-1,no\n")
    with shown("node", "run", one.path, "--web", "--validation", public, "--serve") as (_, address):
        chrome.get(address)
        wait_until(lambda: text(chrome, "name") == "node0")
        assert text(chrome, "phase") == "idle"
        assert text(chrome, "visit") == "never yet"
        wait_until(lambda: "node1" in text(chrome, "neighbours"))
        assert "down" in text(chrome, "neighbours")
        walklearn = [*WALKLEARN, "node", "start-walk", str(one.path)]
        subprocess.run(walklearn, check=True, capture_output=True, timeout=60)
        wait_until(lambda: text(chrome, "phase") == "holding")
        assert text(chrome, "visit") == "it is here"
        wait_until(lambda: chrome.find_element("id", "validation").is_displayed(), "the loss")
        assert "no noise to the model" in text(chrome, "contributions")
        page = chrome.page_source
        # A loss or a time may have the four digits of one number by chance, hardly of a whole row.
        assert not any(all(f"{value:.4g}" in page for value in row) for row in one.rows.X)
        assert fits_a_phone(chrome)
    wait_until(lambda: "does not answer" in text(chrome, "phase"), "its end")


def test_validation_loss_of_a_softmax_model(tmp_path: Path) -> None:
    plan = Plan.from_text(
        'name = "x"\nnodes = 2\nrows = 100\nfeatures = ["a", "b"]\ntarget = "y"\nloss = "softmax"\n'
        'classes = ["p", "q", "r", "s"]\naggregate = "mean"\nintercept = true\nupdates = 100\n'
        "step_size = {constant = 0.1, exponent = 0}\n"
    )
    public = tmp_path / "public.csv"
    public.write_text("a,b,y\n1,2,s\n-1,-1,p\n3,0.5,q\n")
    X, labels = np.array([[1.0, 2.0, 1.0], [-1.0, -1.0, 1.0], [3.0, 0.5, 1.0]]), [3, 0, 1]
    model = np.random.default_rng(1).normal(size=(4, 3))
    line = Line(0, 1, "aa" * 32, "cd" * 16)
    token = made_token(line, 1, 1, model.ravel(), np.zeros(12), 0.1, 1.0)
    expected = np.mean(np.log(np.exp(X @ model.T).sum(axis=1)) - (X @ model.T)[[0, 1, 2], labels])
    assert Validation(public, plan)(token) == pytest.approx(expected)
