"""KServe's own Python SDK, unmodified and in an environment of its own (`make test-sdk`)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.up.machine import Machine, service
from tests.waiting import wait_until

SDK = os.environ.get("ISVC_SDK_PYTHON", "")
pytestmark = pytest.mark.skipif(not SDK, reason="needs the kserve package: make test-sdk")

PROGRAM = """
import asyncio, json, os, sys
from kserve import InferenceRESTClient, KServeClient, RESTConfig

namespace = sys.argv[1]
model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
service = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "sdk", "namespace": namespace},
    "spec": {"predictor": {"model": model}},
}
client = KServeClient(config_file=os.environ["KUBECONFIG"])
# KServeClient.create hands on a model of the SDK, which current versions of `kubernetes` refuse: docs/isvc-up.md.
client.api_instance.create_namespaced_custom_object(
    "serving.kserve.io", "v1beta1", namespace, "inferenceservices", service
)
client.wait_isvc_ready("sdk", namespace=namespace, timeout_seconds=120)
url = client.get("sdk", namespace=namespace)["status"]["url"]


async def predict():
    rest = InferenceRESTClient(RESTConfig(protocol="v1"))
    rows = {"instances": [[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]]}
    return await rest.infer(url, rows, model_name="sdk")


print("ANSWER " + json.dumps(asyncio.run(predict())))
client.delete("sdk", namespace=namespace)
"""


def test_the_sdk_creates_waits_and_predicts(here: Machine) -> None:
    command = [SDK, "-c", PROGRAM, here.namespace]
    done = subprocess.run(command, env=here.env, capture_output=True, text=True, timeout=300)
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert answers, done.stdout + done.stderr
    assert json.loads(answers[0].removeprefix("ANSWER ")) == {"predictions": [0, 2]}


CACHES = """
import os, sys
from kserve import KServeClient


class Manifest(dict):  # what the SDK asks of its own models, which current versions of `kubernetes` refuse
    api_version = "serving.kserve.io/v1alpha1"


def manifest(kind, name, spec, **metadata):
    return Manifest(apiVersion=Manifest.api_version, kind=kind, metadata={"name": name, **metadata}, spec=spec)


namespace, source = sys.argv[1:]
client = KServeClient(config_file=os.environ["KUBECONFIG"])
modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
terms = [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}]
volume = {**modes, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/models"}}
volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
claim = {**modes, "resources": {"requests": {"storage": "1Gi"}}}
group = {"storageLimit": "1Gi", "persistentVolumeSpec": volume, "persistentVolumeClaimSpec": claim}
spec = {"sourceModelUri": source, "modelSize": "1Mi", "nodeGroups": ["sdk"]}
soon = {"nodes": ["local"], "timeout_seconds": 120, "polling_interval": 1}
client.create_local_model_node_group(manifest("LocalModelNodeGroup", "sdk", group))
client.create_local_model_cache(manifest("LocalModelCache", "sdk", spec))
own = manifest("LocalModelNamespaceCache", "own", spec, namespace=namespace)
client.create_local_model_namespace_cache(own, namespace)
client.wait_local_model_cache_ready("sdk", **soon)
client.wait_local_model_namespace_cache_ready("own", namespace, **soon)
print("COPIES", client.get_local_model_cache("sdk")["status"]["copies"]["available"])
client.delete_local_model_namespace_cache("own", namespace)
client.delete_local_model_cache("sdk")
client.delete_local_model_node_group("sdk")
"""


def test_the_sdk_keeps_models_on_nodes(here: Machine, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"weights")
    command = [SDK, "-c", CACHES, here.namespace, f"file://{tmp_path}"]
    done = subprocess.run(command, env=here.env, capture_output=True, text=True, timeout=300)
    assert "COPIES 1" in done.stdout.splitlines(), done.stdout + done.stderr
    wait_until(lambda: here.get("localmodelcache")["items"] == [], "the cache to go")


TRANSFORMER = """
import argparse
from kserve import Model, ModelServer, model_server
from kserve.predictor_config import PredictorConfig

class Halver(Model):
    async def preprocess(self, payload, headers=None):
        return {"instances": [[value / 2 for value in row] for row in payload["instances"]]}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    args, _ = parser.parse_known_args()
    model = Halver(args.model_name)
    model.load()
    ModelServer(predictor_config=PredictorConfig(args.predictor_host), enable_grpc=False).start([model])
"""


def test_a_transformer_written_for_kserve_runs_as_it_is(here: Machine, tmp_path: Path) -> None:
    (tmp_path / "transformer.py").write_text(TRANSFORMER)
    command = [SDK, str(tmp_path / "transformer.py"), "--http_port", "{port}"]
    (here.home / "images.yaml").write_text(json.dumps({"images": {"example.com/halver": {"command": command}}}))
    both = service("halved", "pvc://models/iris")
    container = {"name": "kserve-container", "image": "example.com/halver", "args": ["--model_name=halved"]}
    both["spec"]["transformer"] = {"containers": [container]}
    here.apply(both)
    here.wait_ready("halved")
    rows = json.dumps({"instances": [[10.2, 7.0, 2.8, 0.4], [12.6, 6.6, 12.0, 5.0]]})
    assert here.predict("halved", rows) == {"predictions": [0, 2]}


SERVER = """
import argparse
from kserve import Model, ModelServer, model_server

class Echo(Model):
    def load(self):
        self.ready = True

    def predict(self, payload, headers=None):
        return {"predictions": [self.name, *payload["instances"]]}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    args, _ = parser.parse_known_args()
    model = Echo(args.model_name)
    model.load()
    ModelServer().start([model])
"""


def test_three_servers_of_the_kserve_package_listen_on_ports_of_their_own_and_here_alone(
    here: Machine, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [SDK, str(tmp_path / "server.py")]
    (here.home / "images.yaml").write_text(json.dumps({"images": {"example.com/echo": {"command": command}}}))
    names = ["one", "two", "three"]
    for name in names:
        ports = [{"containerPort": 8080, "protocol": "TCP"}]
        container = {"name": "kserve-container", "image": "example.com/echo", "ports": ports}
        container["args"] = [f"--model_name={name}"]
        custom = service(name, "")
        custom["spec"]["predictor"] = {"containers": [container]}
        here.apply(custom)
    for name in names:
        here.wait_ready(name)
        assert here.predict(name, '{"instances": [1]}') == {"predictions": [name, 1]}
    servers = here.processes(b"server.py")
    listening = [address for pid in servers for address in listening_addresses(pid)]
    assert len(listening) == len(set(listening)) == 6, listening  # HTTP and gRPC each
    assert {host for host, _ in listening} == {"0100007F"}, listening


def listening_addresses(pid: int) -> list[tuple[str, str]]:
    """Hexadecimal host and port of the sockets on which a process accepts connections."""
    links = (os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    own = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    found = [row[1].split(":") for row in rows if row[3] == "0A" and row[9] in own]
    return [(host.removeprefix("0000000000000000FFFF0000"), port) for host, port in found]  # IPv4 in IPv6
