"""What a node does about its models, from what is on its disk and what became of its Jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isvc.api.localmodel import DOWNLOADED, DOWNLOADING, FAILED, PENDING
from isvc.api.model_downloads import DOWNLOADS, ModelDownload, encode
from isvc.api.resources import LOCAL_MODEL_NODE_GROUPS, LOCAL_MODEL_NODES
from isvc.controllers.localmodelnode import watches
from isvc.controllers.localmodelnode.chores import Chores, chores_for
from isvc.controllers.localmodelnode.disk import Receipt, Stock, final_path, incoming_path
from isvc.controllers.localmodelnode.downloads import ATTEMPT, VOLUME, downloads_of
from isvc.controllers.localmodelnode.kind import make_kind
from isvc.controllers.localmodelnode.observe import Observed
from isvc.controllers.localmodelnode.plan import ModelState, entries, plan
from isvc.engine.needs import Answers
from isvc.engine.plan import Answer, Hold, Retire, Want
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, JOBS, PODS
from isvc.serving.environment import Environment, ModelNode
from isvc.serving.storage.uris import storage_key
from isvc.toolkit.cache.memory import MemoryReader

SOURCE = "gs://models/iris"
KEY = storage_key(SOURCE)
NOW = "2026-11-17T10:00:00Z"
RECEIPT = Receipt(inode=1, bytes=100, seconds=3.0, attempts=2)
CONFIG: Object = {
    "metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"},
    "data": {"localModel": '{"enabled": true, "jobNamespace": "jobs"}'},
}


def make_job(condition: str = "", ended: str = NOW, attempt: int = 1, path: str = incoming_path(KEY)) -> Object:
    """Returns a download of the model; with a condition, one that has ended."""
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": ended}] if condition else []
    mount = {"name": VOLUME, "mountPath": "/mnt/models", "subPath": path}
    owner = {"apiVersion": LOCAL_MODEL_NODES.api_version, "kind": LOCAL_MODEL_NODES.kind, "name": "n1", "uid": "n1"}
    return {
        "metadata": {
            "name": f"job-{attempt}",
            "namespace": "jobs",
            "uid": f"job-{attempt}",
            "annotations": {ATTEMPT: str(attempt)},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "download", "volumeMounts": [mount]}]}}},
        "status": {"startTime": NOW, "conditions": conditions, "completionTime": ended if condition else None},
    }


def make_pod(phase: str, exit_code: int = 0, message: str = "") -> Object:
    """Returns the pod of the first Job."""
    ended = {"state": {"terminated": {"exitCode": exit_code, "message": message}}}
    return {
        "metadata": {
            "name": "pod",
            "namespace": "jobs",
            "ownerReferences": [{"kind": "Job", "name": "job-1", "uid": "job-1", "controller": True}],
        },
        "spec": make_job()["spec"]["template"]["spec"],
        "status": {"phase": phase, "containerStatuses": [ended] if exit_code else []},
    }


def make_list(*names: str, phase: str = "", recorded: ModelDownload | None = None) -> Object:
    models = [{"modelName": name, "sourceModelUri": SOURCE, "nodeGroup": "disks"} for name in names]
    written = {DOWNLOADS: encode(dict.fromkeys(names, recorded))} if recorded else {}
    return {
        "metadata": {"name": "n1", "uid": "n1", "annotations": written},
        "spec": {"localModels": models},
        "status": {"modelStatus": dict.fromkeys(names, phase)} if phase else {},
    }


def observe(
    stock: Stock,
    *jobs: Object,
    raw: Object | None = None,
    pods: tuple[Object, ...] = (),
    size: str = "100",
    limit: str = "1000",
) -> Observed:
    environment = Environment(node=ModelNode("n1", job_namespace="jobs"))
    group = {"metadata": {"name": "disks"}, "spec": {"storageLimit": limit}}
    objects = [(CONFIG_MAPS, CONFIG), (LOCAL_MODEL_NODE_GROUPS, group)]
    objects += [(JOBS, each) for each in jobs] + [(PODS, each) for each in pods]
    reader = MemoryReader(objects, reads=watches.reads(environment))
    answers = Answers(recall=lambda need: {"spec": {"modelSize": size}})
    return make_kind(reader, environment, lambda: stock).observe(raw or make_list("iris"), answers, NOW)


def decide(stock: Stock, *jobs: Object, **given: Any) -> tuple[ModelState, Answer]:
    """Returns how far the model is, and what is to become of its Job."""
    planned = plan(observe(stock, *jobs, **given))
    (answer,) = [part.answer for part in planned.parts if part.name == KEY]
    return planned.models[KEY], answer


def test_a_model_that_is_lacking_gets_a_job():
    state, answer = decide(Stock(free=1000))
    assert state.download == ModelDownload(phase=PENDING, total_bytes=100, attempts=1)
    assert isinstance(answer, Want)
    assert [child.key.resource for child in answer.children] == [JOBS]


def test_two_caches_of_one_source_are_one_job():
    _, answer = decide(Stock(free=1000), raw=make_list("iris", "twin"))
    assert isinstance(answer, Want)
    assert len(answer.children) == 1


def test_a_model_that_is_there_gets_none():
    state, answer = decide(Stock(complete={KEY: RECEIPT}))
    assert state.download == ModelDownload(
        phase=DOWNLOADED, bytes=100, total_bytes=100, seconds=RECEIPT.seconds, attempts=2
    )
    assert isinstance(answer, Hold)


def test_a_folder_that_proves_nothing_is_no_model():
    assert isinstance(decide(Stock(unproven=frozenset({KEY}), free=1000))[1], Want)


@pytest.mark.parametrize(("pods", "phase"), [((), PENDING), ((make_pod("Running"),), DOWNLOADING)])
def test_a_download_under_way_is_followed(pods: tuple[Object, ...], phase: str):
    state, answer = decide(Stock(incoming={KEY: 40}, free=1000), make_job(), pods=pods)
    assert (state.download.phase, state.download.bytes, state.download.total_bytes) == (phase, 40, 100)
    assert isinstance(answer, Hold)


def test_a_download_that_outgrows_the_limit_is_stopped_with_the_numbers():
    state, answer = decide(Stock(incoming={KEY: 1100}, free=1000), make_job())
    assert isinstance(answer, Retire)
    assert (state.download.phase, state.download.bytes) == (FAILED, 1100)
    assert "takes 1100" in state.download.error
    assert "storageLimit 1k" in state.download.error


def test_a_model_that_once_outgrew_the_limit_is_not_tried_again_until_there_is_more():
    raw = make_list("iris", phase=FAILED, recorded=ModelDownload(phase=FAILED, bytes=1100, attempts=1))
    assert isinstance(decide(Stock(free=5000), raw=raw)[1], Hold)
    assert isinstance(decide(Stock(free=5000), raw=raw, limit="1200")[1], Want)


@pytest.mark.parametrize(("size", "free", "said"), [("2000", 9999, "storageLimit"), ("500", 499, "larger disk")])
def test_a_model_that_does_not_fit_is_refused_with_a_remedy(size: str, free: int, said: str):
    state, answer = decide(Stock(free=free), size=size)
    assert isinstance(answer, Hold)
    assert state.download.phase == FAILED
    assert said in state.download.error


def test_a_failed_download_waits_and_is_tried_again():
    failed = make_pod("Failed", 1, "404 Not Found")
    state, answer = decide(Stock(free=1000), make_job("Failed"), pods=(failed,))
    assert isinstance(answer, Hold)
    assert (state.download.phase, state.download.error, state.again) == (FAILED, "404 Not Found", 10.0)
    later, answer = decide(Stock(free=1000), make_job("Failed", ended="2026-11-17T09:59:50Z"), pods=(failed,))
    assert isinstance(answer, Want)
    assert (later.download.phase, later.download.attempts) == (PENDING, 2)


def test_a_disk_that_was_full_has_a_remedy():
    state, _ = decide(Stock(free=1000), make_job("Failed"), pods=(make_pod("Failed", 7, "the disk is too small"),))
    assert state.download.error == "the disk is too small: delete a cache of this node, or give its models more space"


def test_a_job_that_ended_after_the_disk_was_looked_at_is_not_blamed():
    state, answer = decide(Stock(free=1000), make_job("Complete"))
    assert isinstance(answer, Hold)
    assert (state.download.phase, state.download.error) == (DOWNLOADING, "")


def test_a_job_that_brought_nothing_names_the_folder():
    state, answer = decide(Stock(free=1000, ended=frozenset({"job-1"})), make_job("Complete"))
    assert isinstance(answer, Hold)
    assert f"nothing is in /mnt/models/{final_path(KEY)}" in state.download.error
    assert "LocalModelNodeGroup disks" in state.download.error


def test_where_an_earlier_pod_may_still_write_nothing_starts():
    state, answer = decide(Stock(free=1000), pods=(make_pod("Running"),))
    assert isinstance(answer, Hold)
    assert state.download.phase == PENDING
    assert "has not ended" in state.download.error


def chores(stock: Stock, *jobs: Object, raw: Object | None = None, in_use: tuple[str, ...] = ()) -> Chores:
    return chores_for(raw or make_list("iris"), stock, downloads_of(jobs, ()), in_use)


def test_a_model_that_nothing_asks_for_is_removed_with_what_was_under_way():
    stock = Stock(complete={"old": RECEIPT}, unproven=frozenset({"strange"}), incoming={"half": 1})
    done = chores(stock)
    assert (done.remove, done.discard, done.expect) == ({"old", "strange"}, {"half"}, {KEY})


def test_nothing_is_discarded_under_a_pod_that_may_write():
    assert chores(Stock(incoming={"half": 1}), in_use=("half",)).discard == set()
    assert chores(Stock(), make_job()) == Chores()


def test_a_download_becomes_the_model_when_its_job_has_ended_well():
    stock = Stock(incoming={KEY: 1}, arrived=frozenset({KEY}))
    assert list(chores(stock, make_job("Complete")).complete) == [KEY]
    assert chores(stock, make_job("Failed")).complete == {}
    assert chores(stock).complete == {}


def test_a_folder_of_kserve_counts_if_its_status_or_its_job_says_so():
    stock = Stock(unproven=frozenset({KEY}))
    assert chores(stock).adopt == set()
    assert chores(stock, raw=make_list("iris", phase=DOWNLOADING)).adopt == set()
    assert chores(stock, raw=make_list("iris", phase=DOWNLOADED)).adopt == {KEY}
    assert chores(stock, make_job("Complete", path=final_path(KEY))).adopt == {KEY}


def test_what_turned_out_too_large_is_discarded():
    raw = make_list("iris", recorded=ModelDownload(phase=FAILED, bytes=7))
    assert chores(Stock(incoming={KEY: 7}), raw=raw).discard == {KEY}
    assert chores(Stock(incoming={KEY: 7}), raw=make_list("iris")).discard == set()


def test_two_sources_with_one_key_never_share_a_folder(monkeypatch: pytest.MonkeyPatch):
    for module in ("chores", "observe", "plan"):
        monkeypatch.setattr(f"isvc.controllers.localmodelnode.{module}.storage_key", lambda source: KEY)
    raw = make_list("iris", "twin")
    raw["spec"]["localModels"][1]["sourceModelUri"] = "gs://evil/twin"
    stock = Stock(complete={KEY: replace(RECEIPT, source=SOURCE)}, free=1000)
    assert chores(stock, raw=raw) == Chores()
    observed = observe(stock, raw=raw)
    states = {model.model_name: state.download for model, state in entries(observed, plan(observed))}
    assert states["iris"].phase == DOWNLOADED
    assert states["twin"].phase == FAILED
    assert "iris" in states["twin"].error
    raw["spec"]["localModels"].reverse()
    assert chores(stock, raw=raw).remove == {KEY}
