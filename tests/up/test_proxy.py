"""/proxy of pods, services and nodes of `isvc up`: kubectl get --raw, kubectl proxy, upgrades, refusals."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.up.machine import Machine, until
from tests.up.test_pods import pod

from isvc.wire.x509.issue import issue_self_signed

SERVER = """
import http.server, json, os, ssl

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.headers.get("Upgrade") == "echo":
            self.send_response(101)
            self.send_header("Upgrade", "echo")
            self.send_header("Connection", "Upgrade")
            self.end_headers()
            while line := self.rfile.readline():
                self.wfile.write(line.upper())
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = {"method": self.command, "path": self.path, "body": body, "headers": headers}
        if self.path.startswith("/large"):
            seen["large"] = "x" * 3_000_000
        answer = json.dumps(seen).encode()
        self.send_response({"/elsewhere": 302, "/teapot": 418, "/nothing": 204}.get(self.path, 200))
        if self.path == "/elsewhere":
            self.send_header("Location", "/large?x=1")
        if self.path == "/nothing":
            answer = b""
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Own", "yes")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else answer)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler)
if pem := os.environ.get("PEM"):
    open("pem", "w").write(pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
PODS, SERVICES = (f"/api/v1/namespaces/proxy/{kind}" for kind in ("pods", "services"))


@pytest.fixture(scope="module")
def here(here: Machine) -> Machine:
    here.apply(pod("web", SERVER, ports=[{"containerPort": 8080, "name": "http"}]))
    pair = issue_self_signed(["secure"], datetime.now(UTC), timedelta(hours=1))
    pem = (pair.key + pair.certificate).decode()
    here.apply(pod("secure", SERVER, ports=[{"containerPort": 8443}], env=[{"name": "PEM", "value": pem}]))
    ports = [{"name": "main", "port": 80, "targetPort": "http"}]
    for name, selector in (("web", {"app": "web"}), ("empty", {"app": "nobody"})):
        spec = {"selector": selector, "ports": ports}
        here.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    until(lambda: "path" in here.kubectl("get", "--raw", f"{SERVICES}/web/proxy/", check=False), "the service")
    here.kubectl("wait", "--for=condition=Ready", "pod/secure", "--timeout=60s")
    assert here.namespace == "proxy"
    return here


@pytest.fixture(scope="module")
def proxied(here) -> Iterator[str]:
    """The address of `kubectl proxy`, which adds the credentials."""
    command = ["kubectl", "proxy", "--port=0"]
    process = subprocess.Popen(command, env=here.env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert found
        yield f"http://{found[0]}"
    finally:
        process.kill()
        process.communicate()


def ask(url: str, method: str = "GET", data: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers.items()), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers.items()), error.read()


@pytest.mark.parametrize(
    "where",
    [f"{PODS}/web", f"{PODS}/web:8080", f"{PODS}/http:web:8080", f"{SERVICES}/web", f"{SERVICES}/web:main",
     f"{SERVICES}/web:80"],
)  # fmt: skip
def test_kubectl_reaches_a_port(here, where):
    seen = json.loads(here.kubectl("get", "--raw", f"{where}/proxy/v1/models/a%20b/?x=1&y=%2F"))
    assert (seen["method"], seen["path"]) == ("GET", "/v1/models/a%20b/?x=1&y=%2F")
    assert "authorization" not in seen["headers"]
    assert seen["headers"]["x-forwarded-uri"].startswith(f"{where}/proxy/v1")


def test_kubectl_reaches_a_port_with_tls(here):
    assert json.loads(here.kubectl("get", "--raw", f"{PODS}/https:secure:8443/proxy/large"))["path"] == "/large"


def test_methods_bodies_statuses_and_headers_pass(proxied):
    url = f"{proxied}{PODS}/web:8080/proxy"
    status, headers, body = ask(f"{url}/v1?dryRun=mine", "POST", b'{"a": 1}', Accept="application/yaml")
    assert (status, headers["X-Own"], headers["Content-Type"]) == (200, "yes", "application/json")
    assert json.loads(body)["body"] == '{"a": 1}'
    assert json.loads(ask(f"{url}/v1", "DELETE")[2])["method"] == "DELETE"
    assert ask(f"{url}/v1", "HEAD")[::2] == (200, b"")
    assert ask(f"{url}/teapot")[0] == 418
    assert ask(f"{url}/nothing")[::2] == (204, b"")


def test_redirects_stay_below_the_proxy(proxied):
    """urllib follows what the pod answers, and what the API server answers to a path without its last slash."""
    _, _, body = ask(f"{proxied}{PODS}/web:8080/proxy/elsewhere")
    seen = json.loads(body)
    assert (seen["path"], len(seen["large"])) == ("/large?x=1", 3_000_000)
    assert json.loads(ask(f"{proxied}{PODS}/web:8080/proxy?q=1")[2])["path"] == "/?q=1"


def test_another_protocol_passes(proxied):
    host, port = proxied.removeprefix("http://").split(":")
    with contextlib.closing(socket.create_connection((host, int(port)), 60)) as sock:
        head = f"GET {PODS}/web:8080/proxy/echo HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: echo"
        sock.sendall(f"{head}\r\n\r\n".encode())
        answer = sock.makefile("rb")
        assert answer.readline().split()[1] == b"101"
        while answer.readline().strip():
            pass
        for word in (b"hello\n", b"again\n"):
            sock.sendall(word)
            assert answer.readline() == word.upper()


def test_a_node_has_a_version_that_programs_can_compare(here):
    server = json.loads(here.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    assert here.kubectl("get", "nodes", "-o", "jsonpath={.items[0].status.nodeInfo.kubeletVersion}") == f"{server}+isvc"


def test_a_node_answers_as_a_kubelet(here):
    node = here.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    summary = json.loads(here.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary"))
    assert summary["node"]["nodeName"] == node


@pytest.mark.parametrize(
    ("where", "code", "why"),
    [
        (f"{PODS}/web:9999/proxy/", 503, "the pod's containers declare no port 9999 (they declare: 8080)"),
        (f"{PODS}/web:main/proxy/", 400, 'invalid port "main": the proxy of a pod takes a number'),
        (f"{PODS}/https:web:8080/proxy/", 503, "the pod does not speak TLS"),
        (f"{PODS}/ftp:web:8080/proxy/", 400, "expected name, name:port or scheme:name:port"),
        (f"{PODS}/other:8080/proxy/", 404, 'pods "other" not found'),
        (f"{SERVICES}/web:81/proxy/", 503, 'no service port "81" found for service "web"'),
        (f"{SERVICES}/empty/proxy/", 503, 'no endpoints available for service "empty"'),
    ],
)
def test_what_cannot_be_reached_says_why(proxied, where, code, why):
    status, _, body = ask(f"{proxied}{where}")
    assert status == code
    assert why in json.loads(body)["message"]


def test_who_may_not_is_refused(here):
    said = here.kubectl("get", "--raw", f"{PODS}/web:8080/proxy/", "--as", "nobody", check=False)
    assert 'cannot get resource "pods/proxy"' in said
