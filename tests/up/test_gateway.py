"""How services are reached on `isvc up`: URLs that every client understands, shares of traffic, reasons."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from tests.up.machine import EXAMPLES, Machine, service, until

# The two versions of the example disagree about this flower.
TELLING = json.dumps({"instances": [[6.0, 3.0, 2.6, 0.7]]}).encode()
Answer: TypeAlias = tuple[int, bytes] | str
STABLE, CANARY = b'{"predictions":[1]}', b'{"predictions":[0]}'


def url_of(here: Machine, name: str) -> str:
    return here.kubectl("get", "isvc", name, "-o", "jsonpath={.status.url}")


def ask(url: str, body: bytes | None = None, host: str = "") -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@contextmanager
def load(url: str, clients: int = 4) -> Iterator[Counter[Answer]]:
    """Requests while the block runs, one after the other from each client; what was answered, and how often."""
    answers: Counter[Answer] = Counter()
    ended = threading.Event()

    def keep_asking() -> None:
        while not ended.is_set():
            try:
                answers[ask(url, TELLING)] += 1
            except OSError as error:
                answers[str(error)] += 1
            time.sleep(0.005)

    with ThreadPoolExecutor(clients) as pool:
        for _ in range(clients):
            pool.submit(keep_asking)
        try:
            yield answers
        finally:
            ended.set()


def test_a_canary_gets_its_share_from_10_to_50_to_100_percent_and_no_request_fails(here):
    here.apply(here.example("iris.yaml"))
    here.wait_ready("iris")
    url = f"{url_of(here, 'iris')}/v1/models/iris:predict"
    canary = (EXAMPLES / "iris-canary.yaml").read_text()
    with load(url) as answers:
        until(lambda: answers[200, STABLE] > 50, "the first version to answer")
        for percent in (10, 50, 100):
            here.apply(canary.replace("trafficPercent: 10", f"trafficPercent: {percent}"))
            until(partial(has_weights, here, "iris-path", [100 - percent, percent]), f"{percent} %")
            until(partial(has_share, answers, percent), f"a canary with {percent} % of the requests")
    assert set(answers) == {(200, STABLE), (200, CANARY)}, answers
    here.kubectl("delete", "isvc", "iris")


def has_weights(here: Machine, route: str, weights: list[int]) -> bool:
    [rule] = here.get("httproute", route)["spec"]["rules"]
    return [backend.get("weight", 1) for backend in rule["backendRefs"]] == weights


def has_share(answers: Counter[Answer], percent: int) -> bool:
    """Returns whether the canary answers its share of 400 further requests; Envoy hears of it after the API server.

    Four standard deviations of 400 draws are 10 % at most; requests under way at the change count a little.
    """
    measured = asked(answers, 400)
    return abs(100 * measured[200, CANARY] / measured.total() - percent) < 11


def asked(answers: Counter[Answer], count: int) -> Counter[Answer]:
    """The answers to as many further requests."""
    before = Counter(answers)
    until(lambda: answers.total() - before.total() >= count, f"{count} requests")
    return answers - before


def test_one_service_by_path_by_host_and_by_address(here):
    here.apply(here.example("iris.yaml"))
    here.wait_ready("iris")
    url = url_of(here, "iris")
    port = url.split(":")[2].split("/")[0]
    assert url == f"http://localhost:{port}/serving/{here.namespace}/iris"
    predict = "/v1/models/iris:predict"
    assert ask(url + predict, TELLING) == (200, STABLE)
    assert ask(url.replace("localhost", "127.0.0.1") + predict, TELLING) == (200, STABLE)
    assert ask(f"http://127.0.0.1:{port}{predict}", TELLING, f"iris-{here.namespace}.localhost:{port}") == (200, STABLE)
    for route in here.get("httproutes")["items"]:
        [parent] = route["status"]["parents"]
        assert [c["status"] for c in parent["conditions"]] == ["True", "True"]
    here.kubectl("wait", "-n", "kserve", "--for=condition=Programmed", "gateway/kserve-ingress-gateway", "--timeout=9s")
    here.kubectl("delete", "isvc", "iris")
    until(lambda: ask(url + predict, TELLING)[0] == 404, "the route to go")


def test_a_service_that_is_not_ready_answers_with_its_reason_and_an_unknown_one_with_404(here):
    here.apply(service("lost", "pvc://models/no-such-folder"))
    gateway = here.gateway
    predict = f"{gateway}/serving/{here.namespace}/lost/v1/models/lost:predict"

    def reason() -> str:
        code, said = ask(predict, TELLING)
        assert code == 503, said
        return json.loads(said)["error"]

    assert f"InferenceService {here.namespace}/lost" in reason()
    until(lambda: "no-such-folder" in reason(), "the reason")
    assert ask(f"{gateway}/v1/models/lost:predict", TELLING, f"lost-{here.namespace}.localhost")[0] == 503
    assert ask(predict.replace("/lost", "/nobody"), TELLING)[0] == 404
    assert ask(f"{gateway}/", None, f"nobody-{here.namespace}.localhost")[0] == 404
    here.kubectl("delete", "isvc", "lost")
    until(lambda: ask(predict, TELLING)[0] == 404, "the service to be forgotten")


SLOW = """
import http.server, os, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'began,')
        time.sleep(7)
        self.wfile.write(b'ended')
http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Slow).serve_forever()
"""


def test_a_request_under_way_when_its_pod_goes_is_given_the_grace_period(here):
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    container: dict[str, Any] = {"name": "c", "image": "python", "command": ["python", "-c", SLOW]}
    container |= {"ports": [{"containerPort": 8080}], "readinessProbe": probe}
    metadata = {"name": "slow", "labels": {"app": "slow"}}
    here.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    spec = {"selector": {"app": "slow"}, "ports": [{"port": 80, "targetPort": 8080}]}
    here.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "slow"}, "spec": spec})
    here.kubectl("wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
    gateway = here.gateway
    request = urllib.request.Request(gateway, headers={"Host": f"slow.{here.namespace}.svc.cluster.local"})

    def answer() -> http.client.HTTPResponse | None:
        """None while the gateway has not heard of the pod, which is ready a moment before its endpoint is known."""
        try:
            opened: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return None
        return opened

    with until(answer, "the gateway leads to the pod") as response:
        assert response.read(6) == b"began,"
        here.kubectl("delete", "pod", "slow", "--wait=false")
        assert response.read() == b"ended"
    here.kubectl("delete", "service", "slow")
    here.kubectl("wait", "--for=delete", "pod/slow", "--timeout=60s")


def test_what_is_not_here_is_warned_of_and_the_service_runs_without_it(here):
    wish = service("wish", "pvc://unheard-of/iris", nodeSelector={"gpu": "a100"}, canaryTrafficPercent=10)
    wish["spec"]["predictor"]["model"]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    shutil.copytree(here.claim / "iris", here.claim.with_name("unheard-of") / "iris")
    command = ["kubectl", "create", "-f", "-"]
    said = subprocess.run(command, env=here.env, input=json.dumps(wish), capture_output=True, text=True, check=True)
    assert "Warning: spec.predictor.canaryTrafficPercent has no effect in Standard mode" in said.stderr
    here.wait_ready("wish")

    def warnings() -> str:
        about = "involvedObject.kind=InferenceService,involvedObject.name=wish,reason=NotOnThisMachine"
        return here.kubectl("get", "events", f"--field-selector={about}", "-o", "jsonpath={.items[*].message}")

    until(warnings, "an event")
    for clause in ("the label gpu=a100", "has no nvidia.com/gpu", "claim unheard-of"):
        assert clause in warnings()
    here.kubectl("delete", "isvc", "wish")
    here.apply(service("lonely", "pvc://models/iris", serviceAccountName="nobody"))
    cause = f"cannot be created, because there is no ServiceAccount {here.namespace}/nobody, which they run as"
    until(lambda: cause in here.isvc("explain", "lonely").stdout, "the cause to be found")
    assert (
        f"to mend it: kubectl create serviceaccount nobody -n {here.namespace}" in here.isvc("explain", "lonely").stdout
    )
    here.kubectl("delete", "isvc", "lonely")
    long = json.dumps(service("n" * 49, "pvc://models/iris"))
    refused = subprocess.run(command, env=here.env, input=long, capture_output=True, text=True)
    assert "metadata.name: must be no more than 45 characters here, got 49" in refused.stderr
