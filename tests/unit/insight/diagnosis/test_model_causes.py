"""Why a service of a cached model is not ready: from the cache and the lists of nodes to a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.api.model_downloads import DOWNLOADS, ModelDownload, encode
from isvc.api.resources import (
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.insight.diagnosis.diagnose import diagnose
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.intent import plan_for
from isvc.insight.diagnosis.model_causes import cache_of, lists_of, size
from isvc.insight.diagnosis.sentence import state
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS

CACHE: Object = {
    "kind": "LocalModelCache",
    "metadata": {"name": "llama"},
    "status": {"nodeStatus": {"n1": "NodeDownloading"}},
}


def service(kind: str = "InferenceService", **labels: str) -> Object:
    return {"kind": kind, "metadata": {"name": "chat", "namespace": "team", "labels": labels}}


def node(name: str, state: str, download: ModelDownload | None = None, namespace: str = "") -> Object:
    key = f"{namespace}/llama" if namespace else "llama"
    return {
        "kind": "LocalModelNode",
        "metadata": {"name": name, "annotations": {DOWNLOADS: encode({key: download})} if download else {}},
        "spec": {"localModels": [{"modelName": "llama", "namespace": namespace, "sourceModelUri": "hf://a/b"}]},
        "status": {"modelStatus": {key: state}},
    }


def findings(obj: Object, *nodes: Object, cache: Object | None = CACHE) -> list[Finding]:
    objects: dict[Any, list[Object]] = {LOCAL_MODEL_CACHES: [cache] if cache else [], LOCAL_MODEL_NODES: [*nodes]}
    return diagnose(Evidence(obj, cache=cache_of(obj, objects), lists=lists_of(obj, objects)))


MARKED = service(**{LOCAL_MODEL: "llama"})


def test_a_cache_that_somebody_may_not_read_is_not_said_to_be_missing():
    (unknown,) = diagnose(Evidence(MARKED, unread={LOCAL_MODEL_CACHES}))
    assert (unknown.cause, unknown.level) == ("NotAllowedToRead", Level.WARNS)
    assert "localmodelcaches" in unknown.message
    assert "CacheNotFound" in {each.cause for each in diagnose(Evidence(MARKED))}


async def test_a_group_that_somebody_may_not_read_is_not_said_to_be_missing():
    spec = {"sourceModelUri": "hf://a/b", "modelSize": "1Gi", "nodeGroups": ["disks"]}
    cache = {**LOCAL_MODEL_CACHES.typed({"metadata": {"name": "llama", "uid": "1"}}), "spec": spec}
    config = {"metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"}}
    config["data"] = {"localModel": '{"enabled": true, "jobNamespace": "jobs"}'}
    known = Snapshot(None, "kserve", {LOCAL_MODEL_CACHES: [cache], CONFIG_MAPS: [config]})
    client = Simulation().client
    missing = (await plan_for(client, known, cache)).problem
    assert missing is not None
    assert missing.cause == "NodeGroupNotFound"
    hidden = await plan_for(client, replace(known, unread=frozenset({LOCAL_MODEL_NODE_GROUPS})), cache)
    assert hidden.problem is None
    assert [each.cause for each in hidden.suspicions] == ["NotAllowedToRead"]


@pytest.mark.parametrize("kind", ["InferenceService", "LLMInferenceService"])
def test_it_says_which_node_is_downloading_and_how_far(kind: str):
    under_way = ModelDownload(bytes=3 * 2**30, total_bytes=14 * 2**30, seconds=40, attempts=2)
    nodes = node("n1", "ModelDownloading", under_way), node("n2", "ModelDownloadPending")
    found, *_ = findings({**MARKED, "kind": kind}, *nodes)
    assert (found.cause, found.level) == ("ModelDownloading", Level.WAITS)
    assert found.message == (
        "the model of LocalModelCache llama is on no node yet: node n1 is downloading it, 3.0 GiB of 14.0 GiB "
        "after 40 s, attempt 2; node n2 has not begun"
    )


def test_it_says_why_a_download_failed():
    failed = node("n1", "ModelDownloadError", ModelDownload(error="403 Forbidden", attempts=3))
    found, *_ = findings(MARKED, failed)
    assert (found.cause, found.level) == ("ModelDownloadFailed", Level.BLOCKS)
    assert "node n1 failed, attempt 3: 403 Forbidden" in found.message


def test_a_download_that_failed_elsewhere_does_not_block():
    found = findings(MARKED, node("n1", "ModelDownloadError"), node("n2", "ModelDownloaded"))
    assert {each.level for each in found if each.cause == "ModelDownloadFailed"} <= {Level.WARNS}


def test_it_says_that_nobody_takes_care():
    found, *_ = findings(MARKED, cache={**CACHE, "status": {}})
    assert found.cause == "ModelOnNoNode"
    assert "localmodel-manager" in found.remedy


def test_it_says_that_the_cache_is_gone():
    found, *_ = findings(MARKED, cache=None)
    assert (found.cause, found.level) == ("CacheNotFound", Level.BLOCKS)


def test_a_service_without_cache_hears_nothing_of_caches():
    causes = {each.cause for each in findings(service(), node("n1", "ModelDownloadError"))}
    assert not causes & {"CacheNotFound", "ModelOnNoNode", "ModelDownloading", "ModelDownloadFailed"}


def test_a_cache_explains_itself():
    done, missing = node("n1", "ModelDownloaded"), node("n2", "ModelDownloading", ModelDownload(bytes=512))
    found, *_ = findings(CACHE, done, missing)
    assert (
        found.message == "the model of LocalModelCache llama is not on all nodes yet: node n2 is downloading it, 512 B"
    )


def test_a_cache_of_the_namespace_is_another_one():
    own = service(**{LOCAL_MODEL: "llama", LOCAL_MODEL_NAMESPACE: "team"})
    cache: Object = {"kind": "LocalModelNamespaceCache", "metadata": {"name": "llama", "namespace": "team"}}
    objects = {LOCAL_MODEL_NAMESPACE_CACHES: [cache], LOCAL_MODEL_CACHES: [CACHE]}
    assert cache_of(own, objects) is cache
    theirs, mine = node("n1", "ModelDownloaded"), node("n2", "ModelDownloading", namespace="team")
    assert lists_of(own, {LOCAL_MODEL_NODES: [theirs, mine]}) == [mine]


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 2**41, "6.0 TiB")])
def test_sizes_are_readable(count: int, text: str):
    assert size(count) == text


def test_a_cache_is_ready_on_nodes_and_not_at_an_address():
    cache: Object = {"metadata": {"name": "llama"}, "status": {"copies": {"available": 2, "total": 2}}}
    assert state(cache, []) == "is ready: 2 of 2 nodes have the model"
