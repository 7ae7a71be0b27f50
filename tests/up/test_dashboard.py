"""The dashboard of `isvc up` over HTTP: who gets in, what pages hold, and that they are kept current."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse

import pytest
from tests.up.machine import Machine, service, until
from tests.up.test_pods import pod


@pytest.fixture(scope="module")
def here(here: Machine) -> Machine:
    (here.claim / "nothing-here").mkdir()
    here.apply(service("broken", "pvc://models/nothing-here"))
    here.apply(service("iris", "pvc://models/iris"))
    here.wait_ready("iris")
    return here


class Visitor:
    """Somebody with the token that was printed; without, if it is empty."""

    def __init__(self, here: Machine) -> None:
        found = re.search(r"dashboard: (http://localhost:\d+)/\?token=(\S+)", here.output.read_text())
        assert found
        self.base, self.token = found[1], found[2]
        self.overview = f"/?namespace={here.namespace}"
        self.services = f"/services/isvc/{here.namespace}"

    def post(self, path: str, **form: str) -> dict:
        """The answer to a form, or to one that is refused, as JSON."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        request = urllib.request.Request(self.base + path, urllib.parse.urlencode(form).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

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
    rows = visitor.json(visitor.overview)["rows"]
    return next((row["cause"] for row in rows if row["place"]["name"] == name), "")


def test_the_overview_says_why_a_service_is_not_ready(visitor):
    until(lambda: "no file that ends in" in cause(visitor, "broken"), "the root cause")
    rows = visitor.json(visitor.overview)["rows"]
    assert [(row["place"]["name"], row["state"]) for row in rows] == [("broken", "not ready"), ("iris", "ready")]
    with visitor.open("/") as answer:
        page = answer.read().decode()
    assert len(page) < 100_000
    assert "no file that ends in" in page


def test_changes_arrive_as_they_happen(here, visitor):
    with visitor.open("/live?q=newcomer") as events:
        here.apply(service("newcomer", "pvc://models/iris"))
        assert _read_until(events, f"service_isvc_{here.namespace}_newcomer".encode())
        here.wait_ready("newcomer")
        assert _read_until(events, b'<span class="state ready">ready</span>')
        here.kubectl("delete", "isvc", "newcomer")
        assert _read_until(events, b"None of")


def test_a_cache_of_the_cluster_has_pages_that_are_kept_current(here, visitor):
    name = f"cache-{here.namespace}"
    spec = {"sourceModelUri": "hf://a/b", "modelSize": "1Mi", "nodeGroups": ["nowhere"]}
    manifest = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "LocalModelCache", "metadata": {"name": name}}
    here.apply({**manifest, "spec": spec})
    path = f"/services/lmc/-/{name}"
    with visitor.open(f"/live?q={name}") as overview:
        assert _read_until(overview, f'href="{path}"'.encode())
        assert _read_until(overview, b"nowhere does not exist")
    with visitor.open(f"{path}/live") as page:
        assert _read_until(page, b"nowhere does not exist")
        here.kubectl("delete", "localmodelcache", name)
        assert _read_until(page, b"event: gone")


def test_pages_of_a_service_that_is_deleted_say_so(here, visitor):
    here.apply(service("passing", "pvc://models/iris"))
    here.wait_ready("passing")
    path = f"{visitor.services}/passing"
    with visitor.open(f"{path}/live") as page, visitor.open(f"{path}/logs/live") as logs:
        assert _read_until(page, b"passing")
        assert _read_until(logs, b"serving passing on port")
        here.kubectl("delete", "isvc", "passing")
        for events in (page, logs):
            assert _read_until(events, b"This service has been deleted")
            assert _read_until(events, b"event: gone")
    assert visitor.status(path) == 404


def test_what_servers_measure_comes_through_the_api_server(here, visitor):
    def titles() -> set[str]:
        here.predict("iris", '{"instances": [[5.1, 3.5, 1.4, 0.2]]}')
        return {chart["title"] for chart in visitor.json(f"{visitor.services}/iris/metrics")}

    until(lambda: {"Requests a second", "Latency", "Replicas"} <= titles(), "two scrapes with requests between")


def test_the_form_begins_with_a_request_that_fits_the_model_and_goes_on_with_what_worked(here, visitor):
    form = f"{visitor.services}/iris/try"
    assert visitor.json(form)["request"] == {"instances": [[1.0, 1.0, 1.0, 1.0]]}
    answered = visitor.post(form, request='{"instances": [[5.1, 3.5, 1.4, 0.2]]}')
    assert not answered["answer"]["failed"], answered
    assert visitor.json(form)["request"] == {"instances": [[5.1, 3.5, 1.4, 0.2]]}


def _read_until(events: HTTPResponse, text: bytes) -> bool:
    return any(text in line for line in events)


def test_nobody_gets_in_without_the_link(visitor):
    token, visitor.token = visitor.token, ""
    assert [visitor.status(path) for path in ("/", "/live", "/?token=wrong", "/?output=json")] == [401] * 4
    visitor.token = token + "x"
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
        nodes = visitor.json(f"{visitor.services}/broken")["tree"]
        return [node for node in _all(nodes) if node["kind"] == "Pod" and node["health"] == "broken"]

    pod = until(broken, "the broken pod")[0]
    assert visitor.json(pod["path"])["spec"]["containers"]
    assert "no file that ends in" in visitor.json(f"{visitor.services}/broken")["findings"][0]["message"]


def _all(nodes: list[dict]) -> list[dict]:
    return [each for node in nodes for each in (node, *_all(node["children"]))]


def test_what_a_service_runs_with_and_what_was_edited(here, visitor):
    here.kubectl("patch", "isvc", "broken", "--type=merge", "-p", '{"spec":{"predictor":{"timeout":77}}}')
    fields = visitor.json(f"{visitor.services}/iris/configuration")
    assert {"service", "controller"} <= {field["source"] for field in fields}
    until(lambda: visitor.json(f"{visitor.services}/broken/history")["edits"], "the edit to be recorded")
    assert "timeout: 77" in visitor.json(f"{visitor.services}/broken/history")["edits"][0]["diff"]
    for page in ("", "/configuration", "/history", "/logs"):
        assert visitor.status(f"{visitor.services}/iris{page}") == 200


def test_logs_are_shown_and_followed(visitor):
    with visitor.open(f"{visitor.services}/iris/logs/live") as events:
        assert _read_until(events, b"serving iris on port")
    assert "serving iris on port" in "".join(line["text"] for line in visitor.json(f"{visitor.services}/iris/logs"))


def test_logs_command_no_terminal_and_bring_no_markup(here, visitor):
    said = "\x1b[31mred\x1b[0m \x1b]0;title\x07\x9b2J\u202e<script>"
    hostile = pod("hostile", f"print({said!r})", restart="Never", env=[{"name": "PYTHONUTF8", "value": "1"}])
    hostile["metadata"]["labels"] = {"serving.kserve.io/inferenceservice": "broken"}
    here.apply(hostile)
    logs = f"{visitor.services}/broken/logs"
    shown = until(lambda: [each["text"] for each in visitor.json(logs) if each["pod"] == "hostile"], "its line")
    assert shown == ["red <script>"]
    with visitor.open(logs) as page:
        assert b"red &lt;script&gt;" in page.read()
    here.kubectl("delete", "pod", "hostile", "--wait=false")


def test_what_is_not_there_is_a_page_that_says_so(visitor):
    for path in (
        f"{visitor.services}/nobody",
        "/services/pods/default/x",
        "/objects/Secret.v1/default/x",
        "/objects/x/y/z",
    ):
        assert visitor.status(path) == 404
    with visitor.open(f"{visitor.services}/broken/live") as events:
        assert _read_until(events, b"kserve-container")


def test_a_service_is_edited_and_the_command_is_shown(here, visitor):
    here.apply(service("edited", "pvc://models/iris"))
    here.wait_ready("edited")
    edit = f"{visitor.services}/edited/edit"
    until(lambda: visitor.status(edit) == 200, "the service on the dashboard")
    assert "scales to 2" in visitor.post(edit, action="scale", replicas="2")["done"]
    assert here.get("isvc", "edited")["spec"]["predictor"]["minReplicas"] == 2
    until(lambda: "back at revision" in visitor.post(edit, action="undo").get("done", ""), "the edit in the history")
    assert "minReplicas" not in here.get("isvc", "edited")["spec"]["predictor"]
    stopped = visitor.post(edit, action="stop")
    assert here.get("isvc", "edited")["metadata"]["annotations"]["serving.kserve.io/stop"] == "true"
    here.run("sh", "-c", stopped["kubectl"])  # which is what has been done already
    until(lambda: visitor.json(edit)["stopped"], "the dashboard to see it")
    visitor.post(edit, action="resume")
    assert "serving.kserve.io/stop" not in here.get("isvc", "edited")["metadata"].get("annotations", {})
    assert "type the name" in visitor.post(edit, action="delete", confirm="something")["message"]
    assert "no action" in visitor.post(edit, action="explode")["message"]
    assert "has to be a number" in visitor.post(edit, action="scale", replicas="²")["message"]
    visitor.post(edit, action="delete", confirm="edited")
    until(lambda: "edited" not in here.kubectl("get", "isvc", "-o", "name"), "it to be gone")


def test_forms_of_other_sites_are_refused(here, visitor):
    said = here.run("curl", "-si", f"{visitor.base}/?token={visitor.token}")
    cookie = re.search(r"Set-Cookie: ([^;]+)", said)
    assert cookie
    edit = (f"{visitor.base}{visitor.services}/iris/edit", "-H", f"Cookie: {cookie[1]}", "-d", "action=stop")
    assert "not one of this dashboard" in here.run("curl", "-s", *edit)
    assert "another site" in here.run("curl", "-s", *edit, "-H", "Origin: https://evil.example")
    assert "another site" in here.run("curl", "-s", *edit, "-H", "Sec-Fetch-Site: cross-site")
    assert "annotations" not in here.get("isvc", "iris")["metadata"] or "stop" not in str(
        here.get("isvc", "iris")["metadata"]["annotations"]
    )


@contextmanager
def dashboard(here: Machine, *flags: str) -> Iterator[Visitor]:
    """`isvc dashboard` beside the one of `isvc up`."""
    command = [sys.executable, "-u", "-c", "from isvc.cli import main; main()", "dashboard", "--port", "0", *flags]
    process = subprocess.Popen(command, env=here.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        visitor = Visitor(here)
        visitor.base, visitor.token = line.split()[-1].partition("/?")[0].rstrip("/"), ""
        yield visitor
    finally:
        process.terminate()
        process.wait(60)


def test_others_get_in_with_the_password_alone(here, tmp_path):
    (tmp_path / "password").write_text("correct horse battery\n")
    with dashboard(here, "--password-file", str(tmp_path / "password"), "--address", "0.0.0.0") as visitor:
        visitor.base = visitor.base.replace("0.0.0.0", "127.0.0.1")
        assert visitor.status("/") == 401
        form = (f"{visitor.base}/sign-in", "-si", "--data-urlencode")
        assert "401" in here.run("curl", *form, "secret=wrong").splitlines()[0]
        signed_in = here.run("curl", *form, "secret=correct horse battery")
        cookie = re.search(r"Set-Cookie: ([^;]+)", signed_in)
        assert cookie
        assert visitor.status("/", Cookie=cookie[1]) == 200
        assert visitor.status(f"{visitor.services}/iris/edit", Cookie=cookie[1]) == 404  # read-only by default


def test_what_a_model_answers_through_the_api_server_is_its_answer(here):
    here.kubectl("create", "serviceaccount", "asker")
    for role, verbs, resource in (
        ("asker", "get,list,watch", "inferenceservices.serving.kserve.io"),
        ("proxy", "create", "services/proxy"),
    ):
        here.kubectl("create", "role", role, f"--verb={verbs}", f"--resource={resource}")
        here.kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={here.namespace}:asker")
    with dashboard(here, "--user-tokens") as visitor:
        visitor.token = here.kubectl("create", "token", "asker").strip()
        refused = visitor.post(f"{visitor.services}/iris/try", request='{"instances": "none"}')["answer"]
        assert (refused["failed"], refused["status"]) == (True, 400), refused
        assert 'Expected "instances" to be a list' in refused["text"].replace("\\", "")
        here.kubectl("delete", "rolebinding", "proxy")

        def is_forbidden() -> bool:
            answer = visitor.post(f"{visitor.services}/iris/try", request='{"instances": [[1, 2, 3, 4]]}')["answer"]
            return answer["failed"] and answer["status"] == 0 and "forbidden" in answer["text"]

        until(is_forbidden, "the API server itself to refuse, which is no answer of the model")


def test_users_see_what_the_cluster_lets_them_see(here):
    for name, resources in (("reader", "inferenceservices.serving.kserve.io"), ("stranger", "")):
        here.kubectl("create", "serviceaccount", name)
        if resources:
            here.kubectl("create", "role", name, "--verb=get,list,watch", f"--resource={resources}")
            here.kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={here.namespace}:{name}")
    with dashboard(here, "--user-tokens") as visitor:
        assert visitor.status("/") == 401
        visitor.token = here.kubectl("create", "token", "reader").strip()
        assert "iris" in {row["place"]["name"] for row in visitor.json("/")["rows"]}
        with visitor.open("/") as answer:
            assert re.search(r"You may not read \d+ kinds", answer.read().decode())
        assert visitor.status(f"/objects/Deployment.v1.apps/{here.namespace}/iris-predictor") == 403
        visitor.token = here.kubectl("create", "token", "stranger").strip()
        assert visitor.json("/")["rows"] == []
        visitor.token = "nonsense"
        assert visitor.status("/") == 401


def test_other_addresses_want_a_password_or_tokens(here):
    refused = here.isvc("dashboard", "--address", "0.0.0.0")
    assert refused.returncode == 2
    assert "add --user-tokens or --password-file" in refused.stderr


def test_it_speaks_tls_with_the_certificate_that_it_is_given(here, tmp_path):
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    here.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, *subject)
    with dashboard(here, "--tls-cert", str(cert), "--tls-key", str(key)) as visitor:
        said = here.run("curl", "-si", "--cacert", cert, f"{visitor.base}/static/dashboard.css")
        assert "200 OK" in said
        assert visitor.base.startswith("https://localhost:")
    for flags, message in (
        (("--tls-cert", str(cert)), "belong together"),
        (("--tls-cert", str(key), "--tls-key", str(cert)), "cannot use"),
    ):
        refused = here.isvc("dashboard", "--port", "0", *flags)
        assert refused.returncode != 0
        assert message in refused.stderr
