"""The dashboard of `isvc up` over HTTP: who gets in, what pages hold, and that they are kept current."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from http.client import HTTPResponse

import pytest
from tests.cluster.local_machine import HAS_TOOLS, Machine, machine, running, service, until

pytestmark = pytest.mark.skipif(not HAS_TOOLS, reason="needs kubectl and curl")


@pytest.fixture(scope="module")
def here(tmp_path_factory, models):
    with running(machine(tmp_path_factory.mktemp("up"), models), "--dashboard-port", "0") as here:
        here.apply(service("broken", "pvc://models/nothing-here"))
        here.apply(service("iris", "pvc://models/iris"))
        here.wait_ready("iris")
        yield here


class Visitor:
    """Somebody with the token that was printed; without, if it is empty."""

    def __init__(self, here: Machine) -> None:
        found = re.search(r"dashboard: (http://localhost:\d+)/\?token=(\S+)", here.output.read_text())
        assert found
        self.base, self.token = found[1], found[2]

    def open(self, path: str, **headers: str) -> HTTPResponse:
        request = urllib.request.Request(
            self.base + path, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=60)
        return answer

    def json(self, path: str) -> dict:
        with self.open(path, Accept="application/json") as answer:
            return json.loads(answer.read())

    def status(self, path: str, **headers: str) -> int:
        try:
            with self.open(path, **headers) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code


@pytest.fixture
def visitor(here):
    return Visitor(here)


def cause(visitor: Visitor, name: str) -> str:
    rows = visitor.json("/")["rows"]
    return next((row["cause"] for row in rows if row["place"]["name"] == name), "")


def test_the_overview_says_why_a_service_is_not_ready(visitor):
    until(lambda: "no file that ends in" in cause(visitor, "broken"), "the root cause")
    rows = visitor.json("/")["rows"]
    assert [(row["place"]["name"], row["state"]) for row in rows] == [("broken", "not ready"), ("iris", "ready")]
    with visitor.open("/") as answer:
        page = answer.read().decode()
    assert len(page) < 100_000
    assert "no file that ends in" in page


def test_changes_arrive_as_they_happen(here, visitor):
    with visitor.open("/live?q=newcomer") as events:
        here.apply(service("newcomer", "pvc://models/iris"))
        assert _read_until(events, b"service_isvc_default_newcomer")
        here.wait_ready("newcomer")
        assert _read_until(events, b'<span class="state ready">ready</span>')
        here.kubectl("delete", "isvc", "newcomer")
        assert _read_until(events, b"None of")


def _read_until(events: HTTPResponse, text: bytes) -> bool:
    return any(text in line for line in events)


def test_nobody_gets_in_without_the_link(visitor):
    token, visitor.token = visitor.token, ""
    assert [visitor.status(path) for path in ("/", "/live", "/?token=wrong", "/?output=json")] == [401] * 4
    visitor.token = "x" + token[1:]
    assert visitor.status("/") == 401
    assert visitor.status("/static/dashboard.css") == 200


def test_the_link_becomes_a_cookie_that_only_the_browser_has(here, visitor):
    said = here.run("curl", "-si", f"{visitor.base}/?token={visitor.token}")
    assert "303 See Other" in said
    cookie = re.search(r"Set-Cookie: (.*)", said)
    assert cookie
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie[1].split(";")}
    assert visitor.token not in cookie[1]
    assert "200 OK" in here.run("curl", "-si", "-H", f"Cookie: {cookie[1].split(';')[0]}", visitor.base + "/")


def test_pages_allow_no_foreign_script_and_no_other_host(visitor):
    with visitor.open("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert not re.search(rb"<script(?! src=)|<style|\son\w+=|style=", answer.read())
    assert visitor.status("/", Host="evil.example") == 403
    assert [visitor.status(path) for path in ("/static/../server.py", "/static/%2e%2e%2fserver.py", "/nothing")] == [
        404
    ] * 3


def test_the_page_of_a_service_leads_to_the_broken_pod(visitor):
    def broken() -> list[dict]:
        nodes = visitor.json("/services/isvc/default/broken")["tree"]
        return [node for node in _all(nodes) if node["kind"] == "Pod" and node["health"] == "broken"]

    pod = until(broken, "the broken pod")[0]
    assert visitor.json(pod["path"])["spec"]["containers"]
    assert "no file that ends in" in visitor.json("/services/isvc/default/broken")["findings"][0]["message"]


def _all(nodes: list[dict]) -> list[dict]:
    return [each for node in nodes for each in (node, *_all(node["children"]))]


def test_what_a_service_runs_with_and_what_was_edited(here, visitor):
    here.kubectl("patch", "isvc", "broken", "--type=merge", "-p", '{"spec":{"predictor":{"timeout":77}}}')
    fields = visitor.json("/services/isvc/default/iris/configuration")
    assert {"service", "controller"} <= {field["source"] for field in fields}
    until(lambda: visitor.json("/services/isvc/default/broken/history")["edits"], "the edit to be recorded")
    assert "timeout: 77" in visitor.json("/services/isvc/default/broken/history")["edits"][0]["diff"]
    for page in ("", "/configuration", "/history", "/logs"):
        assert visitor.status(f"/services/isvc/default/iris{page}") == 200


def test_logs_are_shown_and_followed(visitor):
    with visitor.open("/services/isvc/default/iris/logs/live") as events:
        assert _read_until(events, b"serving iris on port")
    assert "serving iris on port" in "".join(line["text"] for line in visitor.json("/services/isvc/default/iris/logs"))


def test_what_is_not_there_is_a_page_that_says_so(visitor):
    for path in (
        "/services/isvc/default/nobody",
        "/services/pods/default/x",
        "/objects/Secret.v1/default/x",
        "/objects/x/y/z",
    ):
        assert visitor.status(path) == 404
    with visitor.open("/services/isvc/default/broken/live") as events:
        assert _read_until(events, b"kserve-container")
