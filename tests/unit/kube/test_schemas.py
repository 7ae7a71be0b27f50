import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from isvc.kube import schemas
from isvc.kube.objects import GVK

DEPLOYMENT = GVK("apps", "v1", "Deployment")


def test_references_are_shared_dicts():
    deployment = schemas.schema_of(DEPLOYMENT)
    stateful_set = schemas.schema_of(GVK("apps", "v1", "StatefulSet"))
    assert deployment
    assert stateful_set
    pod = schemas.definition("io.k8s.api.core.v1.PodSpec")
    assert deployment["properties"]["spec"]["properties"]["template"]["properties"]["spec"] is pod
    assert stateful_set["properties"]["spec"]["properties"]["template"]["properties"]["spec"] is pod


def test_keywords_beside_a_reference_are_kept():
    deployment = schemas.schema_of(DEPLOYMENT)
    assert deployment
    strategy = deployment["properties"]["spec"]["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    assert strategy["properties"]["rollingUpdate"]["properties"]["maxSurge"]["x-kubernetes-int-or-string"] is True


def test_list_keys_and_merge_keys_are_there():
    pod = schemas.definition("io.k8s.api.core.v1.PodSpec")
    assert pod
    containers = pod["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]


def test_cycles_end_where_they_began():
    props = schemas.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props
    assert props["properties"]["not"] is props


def test_unknown_kinds_have_none():
    assert schemas.schema_of(GVK("serving.kserve.io", "v1beta1", "InferenceService")) is None
    assert schemas.definition("nonsense") is None


def test_every_kind_resolves():
    for gvk in schemas.kinds():
        assert schemas.schema_of(gvk), gvk


def test_threads_that_ask_at_once_get_complete_definitions(monkeypatch: pytest.MonkeyPatch):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for _ in range(20):
        monkeypatch.setattr(schemas, "_LINKED", {})
        start = threading.Barrier(8)

        def ask(start: threading.Barrier = start) -> bool:
            start.wait(30)
            found = schemas.definition.__wrapped__("io.k8s.api.core.v1.PodSpec")
            return found is not None and "properties" in found

        with ThreadPoolExecutor(8) as pool:
            assert all(asked.result() for asked in [pool.submit(ask) for _ in range(8)])
    sys.setswitchinterval(interval)
