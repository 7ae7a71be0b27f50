"""Services on `isvc up` that sleep in Standard mode: every way in wakes them, and nobody who waits is forgotten."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
import pytest
import yaml
from tests.up.load import BODY, ask, ask_at_once
from tests.up.machine import Machine, service, until
from tests.up.test_gateway import load
from websockets.sync.client import connect

from isvc.kube.objects import Object
from isvc.pods.modelserver.open_inference import SERVICE, message

SLEEPING: Final = {
    "serving.kserve.io/deploymentMode": "Standard",
    "serving.kserve.io/autoscalerClass": "keda",
    "isvc.dev/http-metric": "concurrency=4,cooldown=1",
}
PREDICTED: Final = (200, b'{"predictions":[1]}')
METRIC: Final = "isvc.dev/http-metric"


def drowsy(manifest: Object, **annotations: str) -> Object:
    """Returns the manifest of a service whose components sleep after a second without requests; others as they are."""
    if manifest["kind"] != "InferenceService":
        return manifest
    components = {name: {**manifest["spec"][name], "minReplicas": 0} for name in manifest["spec"] if name != "canary"}
    metadata = {**manifest["metadata"], "annotations": {**SLEEPING, **annotations}}
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], **components}}


def reason(here: Machine, name: str) -> str:
    conditions = here.get("isvc", name).get("status", {}).get("conditions") or ()
    return next((each.get("reason", "") for each in conditions if each["type"] == "Ready"), "Unknown")


def until_asleep(here: Machine, *names: str) -> None:
    """Waits until they say so, and their pods are gone but for those of canaries."""
    labels = f"serving.kserve.io/inferenceservice in ({','.join(names)})"
    until(lambda: all(reason(here, name) == "Asleep" for name in names), f"{names} to sleep")
    until(lambda: apps(here, labels) <= {"isvc.iris-trial-predictor"}, f"no pods of {names}")


def apps(here: Machine, labels: str = "") -> set[str]:
    return {each["metadata"]["labels"]["app"] for each in here.get("pods", labels=labels)["items"]}


def url_of(here: Machine, name: str) -> str:
    return str(here.get("isvc", name)["status"]["url"])


def predict_url(here: Machine, name: str) -> str:
    return f"{url_of(here, name)}/v1/models/{name}:predict"


def replicas(here: Machine, name: str) -> int:
    return int(here.get("deploy", f"{name}-predictor")["spec"]["replicas"])


def available(here: Machine, name: str) -> int:
    return int(here.get("deploy", f"{name}-predictor").get("status", {}).get("availableReplicas") or 0)


def test_a_request_wakes_transformers_explainers_canaries_and_steps_of_a_graph(here):
    files = ("iris-transformer.yaml", "iris-explainer.yaml", "graph.yaml", "iris-canary.yaml")
    for file in files:
        for manifest in yaml.safe_load_all(here.example(file)):
            here.apply(drowsy(manifest))
    here.kubectl("wait", "--for=condition=Ready", "isvc,ig", "--all", "--timeout=120s")
    names = [each["metadata"]["name"] for each in here.get("isvc")["items"]]
    until_asleep(here, *names)
    assert apps(here) == {"isvc.flowers-graph", "isvc.iris-trial-predictor"}  # a router and a canary do not sleep
    graph = f"{here.gateway}/serving/{here.namespace}/flowers-graph"
    asked = {
        predict_url(here, "flowers"): {"instances": [[68, 28, 48, 14]]},
        url_of(here, "iris-explained") + "/v1/models/iris-explained:explain": {"instances": [[6.8, 2.8, 4.8, 1.4]]},
        predict_url(here, "iris"): {"instances": [[6.8, 2.8, 4.8, 1.4]]},
        graph: {"instances": [[6.8, 2.8, 4.8, 1.4]]},
    }
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = [*pool.map(lambda each: ask(each[0], json.dumps(each[1]).encode()), asked.items())]
    assert [status for status, _ in answers] == [200] * 4, answers
    flowers, explained, _, named = [json.loads(body) for _, body in answers]
    assert flowers == named == {"predictions": ["versicolor"]}
    assert explained["explanations"][0]["prediction"] == 1
    for file in files:
        here.kubectl("delete", "-f", f"examples/{file}")


def test_websockets_and_grpc_wake_a_service_and_keep_it_awake(here):
    for file in ("websocket.yaml", "grpc.yaml"):
        for manifest in yaml.safe_load_all(here.example(file)):
            here.apply(drowsy(manifest))
    for name in ("echo", "iris-grpc"):
        here.wait_ready(name)
    until_asleep(here, "echo", "iris-grpc")
    gateway = here.gateway.removeprefix("http://")
    authority = f"iris-grpc-{here.namespace}.{gateway}"
    options = (("grpc.default_authority", authority), ("grpc.enable_http_proxy", 0))
    with connect(url_of(here, "echo").replace("http://", "ws://"), proxy=None, open_timeout=60) as talk:
        talk.send("hello")
        assert talk.recv(60) == "HELLO"
        with grpc.insecure_channel(gateway.replace("localhost", "127.0.0.1"), options) as channel:
            infer = channel.unary_unary(
                f"/{SERVICE}/ModelInfer",
                request_serializer=message("ModelInferRequest").SerializeToString,
                response_deserializer=message("ModelInferResponse").FromString,
            )
            inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 4]}]
            row = [struct.pack("<4f", 6.8, 2.8, 4.8, 1.4)]
            asked = message("ModelInferRequest")(model_name="iris-grpc", inputs=inputs, raw_input_contents=row)
            assert list(infer(asked, timeout=60).raw_output_contents) == [struct.pack("<q", 1)]
        until_asleep(here, "iris-grpc")  # for longer than the other one would take, if nobody talked to it
        talk.send("still here")
        assert talk.recv(60) == "STILL HERE"
    here.kubectl("delete", "-f", "examples/websocket.yaml", "-f", "examples/grpc.yaml")


@contextmanager
def without_model(here: Machine, name: str) -> Iterator[None]:
    """A model that cannot be loaded meanwhile."""
    shutil.move(here.claim / name, here.claim / "elsewhere")
    try:
        yield
    finally:
        shutil.move(here.claim / "elsewhere", here.claim / name)


@pytest.fixture
def doze(here: Machine) -> Iterator[str]:
    """The URL of a service that sleeps."""
    here.apply(drowsy(service("doze", "pvc://models/iris")))
    here.wait_ready("doze")
    until_asleep(here, "doze")
    yield predict_url(here, "doze")
    here.kubectl("delete", "isvc", "doze", "--ignore-not-found")


def longest_wait(here: Machine) -> str:
    return str(here.get("interceptorroutes", "doze-predictor")["spec"]["timeouts"]["readiness"])


def is_waking(here: Machine) -> bool:
    return reason(here, "doze") == "Waking"


def test_who_waits_is_told_why_no_pod_comes_and_what_was_deleted(here, doze):
    here.kubectl("annotate", "isvc", "doze", "--overwrite", f"{METRIC}=concurrency=4,cooldown=1,wait=2")
    until(lambda: longest_wait(here) == "2s", "the limit to be known")
    with without_model(here, "iris"), ThreadPoolExecutor(1) as pool:
        status, body = ask(doze)
        said = json.loads(body)["error"]
        assert status == 503
        assert said.startswith(f"no pod of {here.namespace}/doze-predictor took the request within 2 s; ")
        assert "is waking up: container kserve-container of pod" in said
        assert "cannot be created: there is no iris in" in said
        here.kubectl("annotate", "isvc", "doze", "--overwrite", f"{METRIC}=concurrency=4,cooldown=1")
        until(lambda: longest_wait(here) == "600s", "the limit to be gone")
        until(lambda: replicas(here, "doze") == 0, "that it sleeps")
        held = pool.submit(ask, doze)
        until(lambda: is_waking(here), "that it wakes")
        here.kubectl("delete", "isvc", "doze")
        status, body = held.result(60)
        assert status == 503
        assert "was deleted while the request waited for a pod" in json.loads(body)["error"]


def test_who_waits_while_the_service_is_no_longer_to_sleep_is_answered(here, doze):
    with ThreadPoolExecutor(1) as pool, without_model(here, "iris"):
        held = pool.submit(ask, doze)
        until(lambda: is_waking(here), "that it wakes")
        here.kubectl("annotate", "isvc", "doze", f"{METRIC}-", "serving.kserve.io/autoscalerClass-")
        until(lambda: here.get("so")["items"] == [], "that KEDA has nothing to do with it")
    assert held.result(120) == PREDICTED
    here.apply(drowsy(service("doze", "pvc://models/iris")))
    until_asleep(here, "doze")
    here.kubectl("annotate", "isvc", "doze", f"{METRIC}-", "serving.kserve.io/autoscalerClass-")
    until(lambda: replicas(here, "doze") == 1, "the replica that no HPA would start")
    until(lambda: available(here, "doze") == 1, "its pod")  # until the Deployment is looked at, it says Ready as before
    assert ask(doze) == PREDICTED


def test_least_replicas_from_none_to_one_and_back(here, doze):
    def least(number: int) -> None:
        patch = json.dumps({"spec": {"predictor": {"minReplicas": number}}})
        here.kubectl("patch", "isvc", "doze", "--type=merge", "-p", patch)

    least(1)
    until(lambda: replicas(here, "doze") == 1, "a replica without a request")
    assert ask(doze) == PREDICTED
    least(0)
    until_asleep(here, "doze")
    assert ask_at_once(doze, 2) == [PREDICTED] * 2


def test_clients_that_leave_and_bodies_that_are_large_cost_little_while_they_wait(here, doze):
    def memory() -> int:
        [envoy] = here.processes(b"_bin/envoy")
        with open(f"/proc/{envoy}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    place = urlsplit(doze)
    head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {1 << 30}\r\n\r\n".encode()

    @contextmanager
    def clients() -> Iterator[list[socket.socket]]:
        """Clients that have begun to ask, and leave."""
        found = [socket.create_connection(("127.0.0.1", place.port or 80)) for _ in range(20)]
        for client in found:
            client.sendall(head)
            client.setblocking(False)
        until(lambda: is_waking(here), "that it wakes")
        yield found
        for client in found:
            client.close()

    with without_model(here, "iris"):
        with clients():
            pass
        until_asleep(here, "doze")  # nobody waits any more
        before = memory()
        with clients() as found:
            assert all(send_until_nobody_reads(client) < 16 << 20 for client in found)
            assert memory() - before < 20 * (4 << 20)
    assert ask(doze) == PREDICTED
    until_asleep(here, "doze")


def send_until_nobody_reads(client: socket.socket) -> int:
    """Returns how many bytes were taken."""
    sent = 0
    try:
        while sent < 64 << 20:
            sent += client.send(b" " * 65_536)
    except BlockingIOError:
        pass
    return sent


def test_deaths_of_its_only_pod_lose_only_what_was_under_way(here, doze):
    clients = 4

    def pods() -> list[dict[str, Any]]:
        found = here.get("pods", labels="serving.kserve.io/inferenceservice=doze")["items"]
        return [each for each in found if not each["metadata"].get("deletionTimestamp")]

    def process() -> int:
        """The model server that is ready; 0 while there is none."""
        [status] = [each for pod in pods() for each in pod["status"].get("containerStatuses") or ()][:1] or [{}]
        return int(status["containerID"].rpartition("/")[2]) if status.get("ready") else 0

    def more_answers(number: int) -> None:
        wanted = answers[PREDICTED] + number
        until(lambda: answers[PREDICTED] >= wanted, "answers")

    with load(doze, clients) as answers:
        for _ in range(2):
            more_answers(20)
            killed = until(process, "a pod that is ready")
            os.kill(killed, signal.SIGKILL)
            until(lambda killed=killed: process() not in (0, killed), "another process")  # type: ignore[misc]
        more_answers(20)
        failed = answers.total() - answers[PREDICTED]
        here.kubectl("delete", "pod", "-l", "serving.kserve.io/inferenceservice=doze", "--wait=false")
        more_answers(20)
        assert answers.total() - answers[PREDICTED] == failed, answers  # whoever may end in peace loses nothing
    assert failed <= 2 * clients, answers
    until_asleep(here, "doze")
    assert ask(doze, BODY) == PREDICTED
