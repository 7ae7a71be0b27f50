"""From one command to a prediction, with the real kubectl and curl."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.up.machine import EXAMPLES, Machine, namespace_of, service, strange_pod, until

ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.3, 3.3, 6.0, 2.5]]})


def pods(here: Machine, service_name: str) -> list[dict]:
    return here.get("pods", labels=f"serving.kserve.io/inferenceservice={service_name}")["items"]


def container(pod: dict) -> dict:
    return (pod.get("status", {}).get("containerStatuses") or [{}])[0]


def test_from_apply_to_prediction(here):
    here.run("kubectl", "apply", "-f", "examples/iris.yaml")
    here.run("kubectl", "wait", "--for=condition=Ready", "isvc/iris", "--timeout=120s")
    curl = (
        "curl -sS $(kubectl get isvc iris -o jsonpath='{.status.url}')/v1/models/iris:predict "
        "-d @examples/iris-input.json"
    )
    assert json.loads(here.run("sh", "-c", curl)) == {"predictions": [0, 1, 2]}
    assert here.isvc("status").stdout.count(f"{here.namespace}/iris is ready at http://") == 1


def test_logs(here):
    here.apply(service("talker", "pvc://models/iris"))
    here.wait_ready("talker")
    assert "serving talker on port" in here.kubectl("logs", "deploy/talker-predictor")
    assert here.kubectl("logs", "deploy/talker-predictor", "--tail=1", "--timestamps").startswith("20")
    following = subprocess.Popen(
        ["kubectl", "logs", "-f", "deploy/talker-predictor"], env=here.env, stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    while "serving talker" not in (line := following.stdout.readline()):
        assert line, "the log ended"
    here.kubectl("delete", "isvc", "talker")
    following.communicate(timeout=60)  # ends with the container
    assert following.returncode == 0


def test_a_transformer_in_front_of_a_model(here):
    here.apply(here.example("iris-transformer.yaml"))
    here.wait_ready("flowers")
    millimetres = (EXAMPLES / "iris-input-millimetres.json").read_text()
    assert here.predict("flowers", millimetres) == {"predictions": ["setosa", "versicolor", "virginica"]}
    here.kubectl("delete", "-f", "examples/iris-transformer.yaml")


def test_a_killed_model_server_is_started_again_and_the_status_says_so(here):
    here.apply(service("mortal", "pvc://models/iris"))
    here.wait_ready("mortal")
    before = container(pods(here, "mortal")[0])
    os.kill(int(before["containerID"].removeprefix("process://")), signal.SIGKILL)

    def restarted():
        now = container(pods(here, "mortal")[0])
        return now["ready"] and now["restartCount"] == 1 and now

    after = until(restarted, "a restart")
    assert after["lastState"]["terminated"]["exitCode"] == 137
    assert after["containerID"] != before["containerID"]
    until(lambda: here.predict("mortal", ROWS) == {"predictions": [0, 1, 2]}, "the gateway to hear of it")
    here.kubectl("delete", "isvc", "mortal")


def test_a_rolling_update_and_a_restart_under_load_lose_no_request(here):
    here.apply(service("rolling", "pvc://models/iris"))
    here.wait_ready("rolling")
    url = here.kubectl("get", "isvc", "rolling", "-o", "jsonpath={.status.url}")
    target = f"{url}/v1/models/rolling:predict"
    answers: Counter[object] = Counter()
    ended = threading.Event()

    def ask():
        while not ended.is_set():
            try:
                with urllib.request.urlopen(target, ROWS.encode(), timeout=60) as response:
                    answers[response.status] += 1
            except OSError as error:
                answers[str(getattr(error, "reason", error)) + getattr(error, "read", bytes)().decode()] += 1
            time.sleep(0.02)

    def update():
        here.apply(service("rolling", "pvc://models/iris-v2"))

    def restart():
        here.kubectl("rollout", "restart", "deploy/rolling-predictor")

    def replaced(old):
        return not old & {pod["metadata"]["name"] for pod in pods(here, "rolling")}

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(ask)
        try:
            for change in (update, restart):
                old = {pod["metadata"]["name"] for pod in pods(here, "rolling")}
                change()
                until(partial(replaced, old), "the old pod to go")
                here.kubectl("rollout", "status", "deploy/rolling-predictor", "--timeout=60s")
        finally:
            ended.set()
    assert set(answers) == {200}, answers
    assert here.predict("rolling", ROWS) == {"predictions": [0, 1, 2]}
    here.kubectl("delete", "isvc", "rolling")


def test_what_is_deleted_goes_with_all_its_parts(here):
    with namespace_of(here, "brief", here.claim) as brief:
        brief.apply(service("gone", "pvc://models/iris"))
        brief.wait_ready("gone")
    assert brief.get("deploy,rs,pods,services,httproutes")["items"] == []
    assert not [pid for pid in here.processes() if b"gone-predictor" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_an_address_that_does_not_exist_is_told(here):
    here.apply(service("nowhere", "file:///no/such/model"))

    def reported():
        text = here.kubectl("get", "isvc", "nowhere", "-o", "json")
        return "/no/such/model" in json.dumps(json.loads(text).get("status", {})) and text

    status = json.loads(until(reported, "the reason in the status"))["status"]
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == "ModelLoadFailed"
    assert "/no/such/model" in here.kubectl("describe", "isvc", "nowhere")
    here.kubectl("delete", "isvc", "nowhere")


def test_a_model_that_does_not_load_is_told(here):
    broken = here.claim / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "model.joblib").write_bytes(b"not a model")
    here.apply(service("broken", "pvc://models/broken"))

    def reported():
        text = here.kubectl("get", "isvc", "broken", "-o", "json")
        return "does not load" in json.dumps(json.loads(text).get("status", {}))

    until(reported, "the reason in the status")
    assert "does not load" in here.kubectl("describe", "pods", "-l", "serving.kserve.io/inferenceservice=broken")
    here.kubectl("delete", "isvc", "broken")


def test_an_image_without_a_local_program_is_told(here):
    here.apply(strange_pod())
    waiting = until(
        lambda: container(here.get("pod", "strange")).get("state", {}).get("waiting", {}).get("message"), "a reason"
    )
    assert "images.yaml" in str(waiting)
    here.kubectl("delete", "pod", "strange", "--timeout=60s")


def test_a_service_without_a_local_program_is_told_too(here):
    foreign = service("foreign", "")
    foreign["spec"]["predictor"] = {"containers": [{"name": "kserve-container", "image": "example.com/foreign:1"}]}
    here.apply(foreign)
    until(lambda: "images.yaml" in here.kubectl("describe", "isvc", "foreign"), "a reason")
    here.kubectl("delete", "isvc", "foreign")


def test_an_edit_of_a_child_is_undone(here):
    here.apply(service("bent", "pvc://models/iris"))
    here.wait_ready("bent")
    before = here.get("deploy", "bent-predictor")
    here.kubectl("set", "env", "deploy/bent-predictor", "-c", "kserve-container", "X=1")

    def undone():
        after = here.get("deploy", "bent-predictor")
        newer = after["metadata"]["generation"] >= before["metadata"]["generation"] + 2
        return newer and after["spec"]["template"] == before["spec"]["template"]

    until(undone, "the edit to be undone")
    here.kubectl("delete", "isvc", "bent")


def test_rollback_history_and_scale(here):
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "plain"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "plain"}},
            "template": {
                "metadata": {"labels": {"app": "plain"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "c",
                            "image": "python:3.11",
                            "command": ["python", "-c", "import time; time.sleep(600)"],
                        }
                    ],
                },
            },
        },
    }
    here.apply(deployment)
    here.kubectl("rollout", "status", "deploy/plain", "--timeout=60s")
    here.kubectl("set", "env", "deploy/plain", "X=1")
    here.kubectl("rollout", "status", "deploy/plain", "--timeout=60s")
    here.kubectl("rollout", "undo", "deploy/plain")
    here.kubectl("rollout", "status", "deploy/plain", "--timeout=60s")
    live = here.get("deploy", "plain")
    assert "env" not in live["spec"]["template"]["spec"]["containers"][0]
    assert live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    here.kubectl("scale", "deploy/plain", "--replicas=3")
    until(lambda: here.get("deploy", "plain")["status"].get("availableReplicas") == 3, "three replicas")
    here.kubectl("delete", "deploy", "plain", "--timeout=60s")
    until(lambda: not here.get("pods", labels="app=plain")["items"], "the pods to go")


def test_a_server_that_hangs_is_taken_out_of_rotation(here):
    slow = service("hanging", "pvc://models/iris")
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    slow["spec"]["predictor"]["model"]["readinessProbe"] = probe
    here.apply(slow)
    here.wait_ready("hanging")

    def server() -> dict:
        return container(pods(here, "hanging")[0])

    process = int(server()["containerID"].removeprefix("process://"))
    os.kill(process, signal.SIGSTOP)
    try:
        until(lambda: not server()["ready"], "it to be taken out")
    finally:
        os.kill(process, signal.SIGCONT)
    here.wait_ready("hanging")
    assert server()["restartCount"] == 0
    here.kubectl("delete", "isvc", "hanging", "-n", here.namespace)
