"""A model that is on the node before its pods are."""

from __future__ import annotations

import json
import shutil

import yaml
from tests.up.machine import EXAMPLES
from tests.waiting import wait_until

SOURCE = "gs://kfserving-examples/models/sklearn/1.0/model"


def test_a_cached_model_is_served_when_its_source_is_gone_and_leaves_no_trace(here, tmp_path):
    source = tmp_path / "model"
    source.mkdir()
    shutil.copy(here.claim / "iris" / "model.joblib", source)
    manifests = [
        document
        for example in ("local-model-cache", "cached-iris")
        for document in yaml.safe_load_all(
            (EXAMPLES / f"{example}.yaml").read_text().replace(SOURCE, f"file://{source}")
        )
    ]
    *cache, service = manifests
    for manifest in cache:
        here.apply(manifest)
    available = "--for=jsonpath={.status.copies.available}=1"
    here.kubectl("wait", available, "localmodelcache/iris", "--timeout=60s")
    source.rename(tmp_path / "gone")
    here.apply(service)
    here.wait_ready("cached-iris")
    url = here.get("isvc", "cached-iris")["status"]["url"]
    asked = json.dumps({"instances": [[6.8, 2.8, 4.8, 1.4]]})
    assert json.loads(here.run("curl", "-sS", f"{url}/v1/models/cached-iris:predict", "-d", asked)) == {
        "predictions": [1]
    }
    (pod,) = here.get("pods", labels="serving.kserve.io/inferenceservice=cached-iris")["items"]
    assert "initContainers" not in pod["spec"]
    here.kubectl("delete", "isvc", "cached-iris")
    here.kubectl("delete", "localmodelcache", "iris", "--timeout=60s")
    here.kubectl("delete", "localmodelnodegroup", "workers")
    wait_until(lambda: here.get("pv")["items"] == [], "the volumes to go")
    models = here.home / "disk" / "models" / "models"
    wait_until(lambda: [path.name for path in models.iterdir()] == [".downloads"], "the copy to go")


def test_a_pod_whose_volume_is_on_another_node_waits_and_says_so(here):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}]}]
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    capacity, size = {"capacity": {"storage": "1Mi"}}, {"resources": {"requests": {"storage": "1Mi"}}}
    where = {"local": {"path": "/models"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    metadata = {"name": "far"}
    here.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec | capacity | where})
    claim = spec | size | {"volumeName": "far"}
    here.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim})
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": "far"}}
    mounts = [{"name": "models", "mountPath": "/mnt/models"}]
    container = {"name": "c", "image": "busybox", "command": ["true"], "volumeMounts": mounts}
    pod = {"containers": [container], "volumes": [volume]}
    here.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    waits = "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError"
    here.kubectl("wait", waits, "pod/far", "--timeout=60s")
    waiting = here.get("pod", "far")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["message"] == 'persistentvolume "far" is elsewhere: its node affinity does not match node local'
    for kind in ("pod", "pvc", "pv"):
        here.kubectl("delete", kind, "far")
