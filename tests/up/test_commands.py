"""The commands of a day on `isvc up`: what runs, why something does not, and asking what does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.commands import run_isvc
from tests.up.machine import EXAMPLES, Machine, service, until

ROWS = {"instances": [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5]]}
MODEL = "pvc://models/iris"


@pytest.fixture(scope="module")
def here(here: Machine) -> Machine:
    here.apply(service("iris", MODEL))
    return here


def annotated(name: str, **annotations: str) -> dict:
    made = service(name, MODEL)
    made["metadata"]["annotations"] = {f"serving.kserve.io/{key}": value for key, value in annotations.items()}
    return made


def custom(name: str, *command: str, image: str = "python") -> dict:
    container = {"name": "kserve-container", "image": image, **({"command": list(command)} if command else {})}
    made = service(name, MODEL)
    made["spec"] = {"predictor": {"containers": [container]}}
    return made


def llm(name: str) -> dict:
    spec = {"model": {"uri": "pvc://models/none", "name": "m"}, "baseRefs": [{"name": "nowhere"}]}
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": name},
        "spec": spec,
    }


def graph(name: str, target: str) -> dict:
    nodes = {"root": {"routerType": "Sequence", "steps": [{"serviceName": target}]}}
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "InferenceGraph",
        "metadata": {"name": name},
        "spec": {"nodes": nodes},
    }


def test_status_names_the_cause_of_everything_that_does_not_run(here: Machine):
    unknown = service("willow", MODEL)
    unknown["spec"]["predictor"]["model"]["modelFormat"]["name"] = "willow"
    expected = {
        f"{here.namespace}/iris": "is ready at http://",
        f"{here.namespace}/willow": "no runtime found to support predictor with model type: willow",
        f"{here.namespace}/strange": "cannot be pulled: no local program is known for image",
        f"{here.namespace}/silent": "runs but is not ready: Readiness probe failed",
        f"{here.namespace}/paused": "is stopped",
        f"{here.namespace}/knative": "is ready at http://",
        f"{here.namespace}/mesh": "ModelMesh's own controller deploys this service",
        f"LLMInferenceService {here.namespace}/chat": "nowhere",
        f"InferenceGraph {here.namespace}/chain": "willow",
    }
    for each in (
        unknown,
        custom("strange", image="example.com/strange:1"),
        custom("silent", "python", "-c", "import time; time.sleep(1000)"),
        annotated("paused", stop="true"),
        annotated("knative", deploymentMode="Knative"),
        annotated("mesh", deploymentMode="ModelMesh"),
        llm("chat"),
        graph("chain", "willow"),
    ):
        here.apply(each)

    def missing() -> dict[str, str]:
        lines = [line.strip() for line in here.isvc("status").stdout.splitlines()]
        return {
            subject: next((line for line in lines if line.startswith(f"{subject} ")), "not listed")
            for subject, words in expected.items()
            if not any(line.startswith(f"{subject} ") and words in line for line in lines)
        }

    last: dict[str, str] = {}

    def all_named() -> bool:
        last.clear()
        last.update(missing())
        return not last

    try:
        until(all_named, "every cause is named", every=0.5)
    except AssertionError:
        raise AssertionError(json.dumps(last, indent=1)) from None
    assert "sklearn (kserve-sklearnserver" in here.isvc("explain", "willow").stdout
    assert here.isvc("explain", "willow").returncode == 1
    strange = f"{here.namespace}/strange is not ready: image example.com/strange:1 of container kserve-container"
    until(lambda: strange in here.output.read_text(), "the terminal of isvc up says why")
    assert strange in here.run(
        "curl", "-s", f"{here.gateway}/serving/{here.namespace}/strange/v1/models/strange:predict"
    )
    here.kubectl("delete", "isvc", "silent", "strange")


def test_secrets_in_an_address_are_shown_nowhere(here: Machine, tmp_path):
    manifest = tmp_path / "private.json"
    manifest.write_text(json.dumps(service("private", "https://me:hunter2@127.0.0.1:9/model.joblib?sig=hunter2")))
    planned = here.isvc("diff", "-f", str(manifest))
    here.kubectl("create", "-f", str(manifest))
    here.apply(service("odd", "odd://me:hunter2@host/model?sig=hunter2"))  # which conditions, events and logs quote
    until(lambda: "private is not ready: model https://" in here.output.read_text(), "the terminal to say it")
    until(lambda: "cannot be downloaded" in here.isvc("explain", "private").stdout, "the download to fail")
    until(lambda: "(hidden)@host" in here.kubectl("get", "events", "-n", here.namespace), "the event")
    texts = {
        "diff": planned.stdout,
        "explain": here.isvc("explain", "private").stdout,
        "get": here.isvc("get", "private", "-o", "wide").stdout,
        "effective": here.isvc("effective", "private").stdout,
        "status": here.kubectl("get", "isvc", "odd", "-n", here.namespace, "-o", "jsonpath={.status}"),
        "events": here.kubectl("get", "events", "-n", here.namespace, "-o", "json"),
        "terminal": here.output.read_text(),
        "log": (here.home / "logs" / "isvc.log").read_text(),
    }
    assert {"(hidden)@127.0.0.1:9" in texts[name] for name in ("explain", "diff")} == {True}
    assert {"(hidden)@host" in texts[name] for name in ("status", "events", "log")} == {True}
    assert [name for name, text in texts.items() if "hunter2" in text] == []


def test_wait_is_quick_where_waiting_cannot_help(here: Machine):
    assert here.isvc("wait", "iris").stdout == f"InferenceService {here.namespace}/iris is ready\n"
    here.apply(annotated("halted", stop="true"))
    given_up = here.isvc("wait", "halted", "--timeout", "600")
    assert given_up.returncode == 2
    assert "it is stopped by its annotation" in given_up.stderr
    late = here.isvc("wait", "nobody")
    assert (late.returncode, late.stdout) == (1, "")
    assert late.stderr.startswith("Error: there is no service 'nobody'")


def test_what_is_missing_is_named_and_used_when_it_is_there(here: Machine):
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": MODEL}
    secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "later", "key": "key"}}}
    unkeyed = service("unkeyed", MODEL)
    unkeyed["spec"]["predictor"]["model"] = {**model, "env": [secret]}
    for each in (service("claimless", "pvc://nowhere/iris"), service("pathless", "pvc://models/later"), unkeyed):
        here.apply(each)
    for name, words in {
        "claimless": f"create the PersistentVolumeClaim nowhere in namespace {here.namespace}",
        "pathless": f"there is no later in {here.claim}",
        "unkeyed": f"create the Secret later in namespace {here.namespace}",
    }.items():
        until(partial(is_explained, here, name, words), f"the cause of {name}")
    assert not here.claim.with_name("nowhere").exists()
    (here.claim / "iris").rename(here.claim / "later")
    here.kubectl("create", "secret", "generic", "later", "-n", here.namespace, "--from-literal=key=x")
    here.wait_ready("pathless")
    (here.claim / "later").rename(here.claim / "iris")
    here.kubectl("delete", "isvc", "-n", here.namespace, "claimless", "pathless", "unkeyed")


def is_explained(here: Machine, name: str, words: str) -> bool:
    return words in here.isvc("explain", name).stdout


def test_nothing_is_imported_while_the_latency_is_measured(here: Machine):
    assert here.isvc("wait", "iris").returncode == 0
    code = (
        "import sys, time\nfrom isvc.cli import main\nclock, looks = time.monotonic, []\n"
        "time.monotonic = lambda: (looks.append((sys._getframe(1).f_code.co_name, set(sys.modules))), clock())[1]\n"
        "try:\n    main()\nfinally:\n"
        "    first, *_, last = [modules for caller, modules in looks if caller == '_predict']\n"
        "    print('imported:', *(last - first), file=sys.stderr)"
    )
    command = [sys.executable, "-P", "-c", code, "predict", "iris", "-d", json.dumps(ROWS)]
    done = subprocess.run(command, env=here.env, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == {"predictions": [0, 1]}
    assert done.stderr.endswith("imported:\n"), done.stderr


def test_predict_finds_the_url_and_the_protocol(here: Machine, tmp_path):
    assert here.isvc("wait", "iris").returncode == 0
    request = tmp_path / "request.json"
    request.write_text(json.dumps(ROWS))
    answer = here.isvc("predict", "iris", "-d", str(request))
    assert json.loads(answer.stdout) == {"predictions": [0, 1]}
    assert " ms" in answer.stderr
    tensor = {"name": "x", "shape": [2, 4], "datatype": "FP64", "data": ROWS["instances"]}
    second = here.isvc("predict", "iris", "-d", json.dumps({"inputs": [tensor]}), "--repeat", "3")
    assert json.loads(second.stdout)["outputs"][0]["data"] == [0, 1]
    assert "median" in second.stderr
    refused = here.isvc("predict", "iris", "-d", '{"instances": "nonsense"}')
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: http://")
    assert refused.stderr.count("\n") == 1


def test_logs_of_all_pods_with_their_component(here: Machine):
    assert here.isvc("wait", "iris").returncode == 0
    shown = here.isvc("logs", "iris").stdout
    assert "predictor/kserve-container" in shown
    assert "serving iris on port" in shown
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        command = [sys.executable, "-c", "from isvc.cli import main; main()", "logs", "iris"]
        done = subprocess.run(command, env=here.env, stdout=nobody, stderr=subprocess.PIPE, timeout=60)
    assert done.stderr == b""


def test_logs_are_followed_from_pod_to_pod_until_ctrl_c(here: Machine):
    assert here.isvc("wait", "iris").returncode == 0
    command = [sys.executable, "-c", "from isvc.cli import main; main()", "logs", "iris", "-f"]
    output = here.home.parent / "followed"
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=here.env, stdout=file, stderr=file, preexec_fn=hear_ctrl_c)
    try:
        until(lambda: pods_in(output) >= 1, "the log of the pod")
        here.kubectl("delete", "pod", "-l", "serving.kserve.io/inferenceservice=iris", "--wait=false")
        until(lambda: pods_in(output) >= 2, "the log of its successor")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in output.read_text()


def hear_ctrl_c() -> None:
    """In the background of a shell, where this suite may run, Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def pods_in(output: Path) -> int:
    lines = [line.split() for line in output.read_text().splitlines() if "serving iris on port" in line]
    return len({words[1] for words in lines})


def test_pods_that_are_older_than_the_configuration_are_told_of(here: Machine, models: Path):
    with files_of(models / "iris") as address:
        here.apply(service("fetched", f"{address}/model.joblib"))
        here.wait_ready("fetched")
        before = here.get("clusterstoragecontainer", "default")["spec"]["container"]["image"]
        set_storage_image(here, "kserve/storage-initializer:next")
        told = "(initContainers[storage-initializer].image) would be made differently since"
        until(lambda: told in here.isvc("explain", "fetched").stdout, "the webhooks see the change")
        assert "ClusterStorageContainer default" in here.isvc("explain", "fetched").stdout
        set_storage_image(here, before)
        here.kubectl("delete", "isvc", "fetched")


def set_storage_image(here: Machine, image: str) -> None:
    change = json.dumps({"spec": {"container": {"image": image}}})
    here.kubectl("patch", "clusterstoragecontainer", "default", "--type=merge", "-p", change)


@contextmanager
def files_of(folder: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_shells_complete_the_names_of_services_and_namespaces(here: Machine):
    assert "plain,iris" in completed(here, "explain", "ir")
    assert "plain,isvc/iris" in completed(here, "logs", "isvc/ir")
    assert completed(here, "explain", "llmisvc/ir") == []
    assert completed(here, "wait", "-n", "kserve", "ir") == []
    assert "plain,kserve" in completed(here, "get", "-n", "ks")


def completed(here: Machine, *words: str) -> list[str]:
    environment = {**here.env, "_ISVC_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("isvc", *words))}
    environment["COMP_CWORD"] = str(len(words))
    done = run_isvc(env=environment)
    assert done.stderr == ""
    return done.stdout.split()


def test_who_may_read_little_gets_a_sentence(here: Machine):
    rule = {"apiGroups": ["serving.kserve.io"], "resources": ["inferenceservices"], "verbs": ["get", "list"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "viewer"},
        "rules": [rule],
    }
    here.apply(role)
    here.kubectl("create", "serviceaccount", "viewer")
    here.kubectl("create", "rolebinding", "viewer", "--role=viewer", f"--serviceaccount={here.namespace}:viewer")
    config = json.loads(here.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": here.kubectl("create", "token", "viewer").strip()}
    kubeconfig = here.home.parent / "viewer"
    kubeconfig.write_text(json.dumps(config))
    assert "iris" in here.isvc("get", "--kubeconfig", str(kubeconfig)).stdout
    for words in (
        "get -A",
        "logs iris",
        "logs iris -f",
        "history iris",
        "effective iris",
        f"diff -f {EXAMPLES / 'iris.yaml'}",
    ):
        refused = here.isvc(*words.split(), "--kubeconfig", str(kubeconfig))
        assert refused.returncode in (1, 2), words
        assert refused.stderr.startswith("Error: "), refused.stderr
        assert "forbidden" in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert "could not be planned" in here.isvc("explain", "iris", "--kubeconfig", str(kubeconfig)).stdout
    meant = here.isvc("explain", "irs").stderr
    assert meant == f"Error: there is no service 'irs' in namespace {here.namespace}; is iris meant?\n"


def test_get_lists_every_kind_as_kubectl_would(here: Machine):
    for command in ("get", "explain"):
        nothing = here.isvc(command, "-n", "nowhere")
        assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "no services found\n")
    listed = here.isvc("get", "-o", "name").stdout.split()
    assert "inferenceservice.serving.kserve.io/iris" in listed
    assert json.loads(here.isvc("get", "iris", "-o", "json").stdout)["metadata"]["name"] == "iris"
    assert here.isvc("get", "isvc", "-A").stdout.startswith("NAMESPACE ")
    assert "REASON" in here.kubectl("get", "isvc", "-o", "wide")


@pytest.mark.parametrize("name", ["a" * 300, "a" * 64, "модель", "iris\u202eevil", "-x", "iris..x"], ids=ascii)
def test_names_that_are_none_get_a_sentence(here: Machine, name: str) -> None:
    manifest = {**service("x", MODEL), "metadata": {"name": name}}
    asked = subprocess.run(
        ["kubectl", "create", "-f", "-"],
        env=here.env,
        input=json.dumps(manifest),
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 1
    assert "metadata.name: " in asked.stderr
    for words in (("explain", "--", name), ("logs", "--", name), ("predict", "-d", json.dumps(ROWS), "--", name)):
        done = here.isvc(*words)
        assert done.returncode, words
        assert "Traceback" not in done.stderr
