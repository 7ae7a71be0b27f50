"""LeaderWorkerSets: groups of pods, and those of the LLM server, of which the leader runs alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from isvc.kube.objects import Object, labels_of, name_of
from isvc.kube.timestamps import parse_timestamp
from isvc.local.controllers.leader_worker_sets.controller import leads_alone, set_status
from isvc.local.controllers.leader_worker_sets.pods import COMPLETE, Place, deployment_of, group_pod, place_of
from isvc.local.controllers.leader_worker_sets.steps import (
    MIN_AGE,
    Groups,
    Step,
    groups,
    newly_complete,
    next_step,
    will_restart,
)

NOW = "2026-11-16T12:00:00Z"


def worker_set(*, replicas: int = 2, image: str = "python:3.11", startup: str = "", **templates: object) -> Object:
    container = {"name": "main", "image": image, "env": [{"name": "A"}]}
    pod = {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "g", "namespace": "default", "uid": "u", "generation": 2},
        "spec": {
            "replicas": replicas,
            "startupPolicy": startup or "LeaderCreated",
            "leaderWorkerTemplate": {"workerTemplate": pod, "size": 3, **templates},
        },
    }


def running(owner: Object, places: list[Place], *, ready: bool = True) -> dict[Place, Object]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    pods = {place: {**group_pod(owner, place), "status": status} for place in places}
    for pod in pods.values():
        pod["metadata"]["creationTimestamp"] = NOW
    return pods


def step_of(owner: Object, pods: dict[Place, Object], age: timedelta = MIN_AGE) -> Step:
    return next_step(owner, pods, parse_timestamp(NOW) + age)


def group(number: int) -> list[Place]:
    return [Place(number, index) for index in range(3)]


def deleted(step: Step) -> list[str]:
    assert not step.create
    return sorted(map(name_of, step.delete))


def restarted(pod: Object) -> Object:
    return {**pod, "status": {**pod["status"], "containerStatuses": [{"restartCount": 1}]}}


def ending(pod: Object) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": NOW}}


def env(container: Object) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_a_worker_knows_its_place():
    pod = group_pod(worker_set(), Place(1, 2))
    assert name_of(pod) == pod["spec"]["hostname"] == "g-1-2"
    labels = {key.rpartition("/")[2]: value for key, value in labels_of(pod).items()}
    assert labels.items() >= {"app": "llm", "name": "g", "group-index": "1", "worker-index": "2"}.items()
    assert place_of(pod) == Place(1, 2)
    expected = {"LWS_LEADER_ADDRESS": "127.0.0.1", "LWS_GROUP_SIZE": "3", "LWS_WORKER_INDEX": "2", "A": ""}
    assert env(pod["spec"]["containers"][0]) == expected
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet"


def test_a_leader_is_of_its_own_template_if_there_is_one():
    leader = {"spec": {"initContainers": [{"name": "first"}], "containers": [{"name": "leader"}]}}
    pod = group_pod(worker_set(leaderTemplate=leader), Place(0, 0))
    assert name_of(pod) == "g-0"
    assert [each["name"] for each in pod["spec"]["containers"]] == ["leader"]
    assert env(pod["spec"]["initContainers"][0])["LWS_WORKER_INDEX"] == "0"
    assert group_pod(worker_set(), Place(0, 0))["spec"]["containers"][0]["name"] == "main"


@pytest.mark.parametrize(("startup", "ready", "workers"), [
    ("LeaderCreated", False, 2), ("LeaderReady", False, 0), ("LeaderReady", True, 2),
])  # fmt: skip
def test_workers_follow_their_leader(startup, ready, workers):
    owner = worker_set(replicas=1, startup=startup)
    assert step_of(owner, {}) == Step(create=[Place(0, 0)], delete=[])
    assert len(step_of(owner, running(owner, [Place(0, 0)], ready=ready)).create) == workers


@pytest.mark.parametrize(("lost", "replaced"), [
    (restarted, ["g-1", "g-1-1", "g-1-2"]), (ending, ["g-1", "g-1-1"]),
])  # fmt: skip
def test_a_group_is_replaced_as_a_whole(lost, replaced):
    owner = worker_set()
    pods = running(owner, [*group(0), *group(1)])
    pods[Place(1, 2)] = lost(pods[Place(1, 2)])
    assert deleted(step_of(owner, pods)) == replaced


def test_a_group_that_crashes_is_replaced_only_after_a_while():
    owner = worker_set(replicas=1)
    pods = {place: restarted(pod) for place, pod in running(owner, group(0)).items()}
    assert step_of(owner, pods, MIN_AGE / 2) == Step()
    assert will_restart(owner, pods)
    assert deleted(step_of(owner, pods)) == ["g-0", "g-0-1", "g-0-2"]
    set_back = step_of(owner, pods, -timedelta(days=1))
    assert set_back == step_of(owner, pods), "the clock was set back"


def test_a_group_starts_again_only_when_all_of_it_is_gone():
    owner = worker_set(replicas=1)
    pods = running(owner, group(0))
    del pods[Place(0, 0)]
    assert deleted(step_of(owner, pods)) == ["g-0-1", "g-0-2"]
    assert step_of(owner, {place: ending(pod) for place, pod in pods.items()}) == Step()


@pytest.mark.parametrize(("policy", "replaced"), [("RecreateGroupOnPodRestart", ["g-0", "g-0-1"]), ("None", [])])
def test_a_worker_that_vanished_is_missed(policy, replaced):
    owner = worker_set(replicas=1, restartPolicy=policy)
    pods = running(owner, group(0))
    (leader,) = newly_complete(pods)
    leader["metadata"]["annotations"][COMPLETE] = "true"
    assert newly_complete(pods) == []
    del pods[Place(0, 2)]
    step = step_of(owner, pods)
    assert sorted(map(name_of, step.delete)) == replaced
    assert list(step.create) == ([] if replaced else [Place(0, 2)])


def test_another_size_replaces_groups_one_at_a_time():
    owner, larger = worker_set(), worker_set(size=4)
    pods = running(owner, [*group(0), *group(1)])
    assert deleted(step_of(larger, pods)) == ["g-1", "g-1-1", "g-1-2"]
    assert groups(larger, pods) == Groups(replicas=2, ready=2, updated=0)


def test_with_the_policy_none_a_worker_is_replaced_by_itself_and_a_leader_with_its_group():
    owner = worker_set(replicas=1, restartPolicy="None")
    pods = running(owner, group(0))
    assert step_of(owner, pods | {Place(0, 1): ending(pods[Place(0, 1)])}) == Step()
    assert deleted(step_of(owner, pods | {Place(0, 0): ending(pods[Place(0, 0)])})) == ["g-0-1", "g-0-2"]
    del pods[Place(0, 1)]
    assert step_of(owner, pods) == Step(create=[Place(0, 1)], delete=[])


def test_an_update_replaces_the_last_group_first_and_waits_for_it():
    owner, changed = worker_set(), worker_set(image="python:3.12")
    pods = running(owner, [*group(0), *group(1)])
    assert deleted(step_of(changed, pods)) == ["g-1", "g-1-1", "g-1-2"]
    assert step_of(changed, pods | running(changed, group(1), ready=False)) == Step()
    assert deleted(step_of(changed, pods | running(changed, group(1)))) == ["g-0", "g-0-1", "g-0-2"]


@pytest.mark.parametrize(
    ("strategy", "replaced"),
    [
        ({"maxUnavailable": 2}, ["g-1", "g-2"]),
        ({"maxUnavailable": "70%"}, ["g-1", "g-2"]),
        ({"maxUnavailable": "10%"}, ["g-2"]),
        ({"partition": 1, "maxUnavailable": 3}, ["g-1", "g-2"]),
        ({"partition": 3}, []),
    ],
)
def test_an_update_heeds_the_rollout_strategy(strategy: Object, replaced: list[str]):
    owner, changed = worker_set(replicas=3), worker_set(replicas=3, image="python:3.12")
    changed["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": strategy}
    found = deleted(step_of(changed, running(owner, [*group(0), *group(1), *group(2)])))
    assert [name for name in found if name in ("g-0", "g-1", "g-2")] == replaced


def surging(owner: Object, **strategy: object) -> Object:
    owner["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1, **strategy}}
    return owner


def play(owner: Object, pods: dict[Place, Object]) -> tuple[int, int]:
    """Takes steps until there are none, each of whose pods becomes ready; the fewest ready groups, the most groups."""
    fewest, most = groups(owner, pods).ready, groups(owner, pods).replicas
    while (step := step_of(owner, pods)).create or step.delete:
        pods |= running(owner, list(step.create), ready=False)
        gone = {name_of(pod) for pod in step.delete}
        for place in [place for place, pod in pods.items() if name_of(pod) in gone]:
            del pods[place]
        fewest, most = min(fewest, groups(owner, pods).ready), max(most, groups(owner, pods).replicas)
        for pod in pods.values():
            pod["status"]["conditions"][0]["status"] = "True"
    return fewest, most


@pytest.mark.parametrize(
    ("strategy", "fewest", "most"),
    [
        ({}, 3, 4),
        ({"maxSurge": 2}, 3, 5),
        ({"maxSurge": "50%"}, 3, 5),
        ({"maxSurge": 9}, 3, 6),
        ({"maxSurge": 1, "maxUnavailable": 1}, 2, 4),
        ({"maxSurge": 0}, 2, 3),
        ({"partition": 2}, 3, 4),
        ({"partition": 3}, 3, 3),
    ],
)
def test_an_update_with_more_groups_for_a_while(strategy: Object, fewest: int, most: int):
    before = surging(worker_set(replicas=3), **strategy)
    after = surging(worker_set(replicas=3, image="python:3.12"), **strategy)
    pods = running(before, [*group(0), *group(1), *group(2)])
    assert play(after, pods) == (fewest, most)
    assert groups(after, pods) == Groups(replicas=3, ready=3, updated=3 - strategy.get("partition", 0))
    assert step_of(after, pods) == Step()


def test_another_update_replaces_the_groups_that_the_first_one_added():
    owners = [surging(worker_set(replicas=2, image=f"python:3.{minor}")) for minor in (11, 12, 13)]
    pods = running(owners[0], [*group(0), *group(1)]) | running(owners[1], group(2))
    assert deleted(step_of(owners[2], pods)) == ["g-2", "g-2-1", "g-2-2"]


def test_a_set_that_starts_has_no_more_groups_than_replicas():
    owner = surging(worker_set(replicas=2))
    assert step_of(owner, {}).create == [Place(0, 0), Place(1, 0)]
    assert step_of(owner, running(owner, [*group(0), *group(1)], ready=False)) == Step(delete=())


def test_groups_that_the_partition_protects_are_not_waited_for():
    owner = worker_set(replicas=3)
    owner["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": 2}}
    assert set_status(owner, Groups(replicas=3, ready=3, updated=1), NOW)["conditions"][0]["status"] == "True"
    assert set_status(owner, Groups(replicas=3, ready=3, updated=0), NOW)["conditions"][0]["status"] == "False"


@pytest.mark.parametrize(("size", "indices"), [(5, "00011"), (4, "0011")], ids=["leader apart", "leader within"])
def test_pods_know_their_subgroup(size: int, indices: str):
    owner = worker_set(size=size, subGroupPolicy={"subGroupSize": 2})
    pods = [group_pod(owner, Place(0, index)) for index in range(size)]
    assert "".join(labels_of(pod)["leaderworkerset.sigs.k8s.io/subgroup-index"] for pod in pods) == indices


def test_fewer_groups():
    owner = worker_set(replicas=1)
    assert deleted(step_of(owner, running(owner, [*group(0), *group(1)]))) == ["g-1", "g-1-1", "g-1-2"]


def test_a_group_is_ready_only_with_all_of_its_pods():
    owner = worker_set()
    pods = running(owner, [*group(0), *group(1)])
    assert groups(owner, pods) == Groups(replicas=2, ready=2, updated=2)
    pods |= running(owner, [Place(1, 2)], ready=False)
    assert groups(owner, pods) == Groups(replicas=2, ready=1, updated=2)
    del pods[Place(1, 2)]
    assert groups(owner, pods) == Groups(replicas=2, ready=1, updated=2)


@pytest.mark.parametrize(("image", "alone"), [
    ("python:3.11", False), ("vllm/vllm-openai:v0.11", True), ("ghcr.io/llm-d/llm-d-cuda:v0.4", True),
    ("kserve/huggingfaceserver", True), ("ghcr.io/llm-d/llm-d-routing-sidecar:v0.4", False),
])  # fmt: skip
def test_workers_of_the_llm_server_do_not_run(image, alone):
    assert leads_alone(worker_set(image=image)) == alone


def test_lone_leaders_are_a_deployment_that_goes_with_the_set():
    leader = {"metadata": {"labels": {"role": "leader"}}, "spec": {"containers": [{"name": "leader"}]}}
    made = deployment_of(worker_set(leaderTemplate=leader))
    assert made["spec"]["replicas"] == 2
    pod = made["spec"]["template"]
    assert pod["metadata"]["labels"]["role"] == "leader"
    assert made["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [each["name"] for each in pod["spec"]["containers"]] == ["leader"]
    assert env(pod["spec"]["containers"][0])["LWS_GROUP_SIZE"] == "1"
    assert made["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet"


@pytest.mark.parametrize(("ready", "available"), [(1, "False"), (2, "True")])
@pytest.mark.parametrize(("image", "said"), [("vllm/vllm-openai", "runs alone"), ("python:3.11", "of 2 groups")])
def test_the_status_counts_groups_and_says_whether_leaders_are_alone(ready, available, image, said):
    status = set_status(worker_set(image=image), Groups(replicas=2, ready=ready, updated=2), NOW)
    conditions = {each["type"]: each for each in status["conditions"]}
    assert conditions["Available"]["status"] == available
    assert said in conditions["Available"]["message"]
    assert status["readyReplicas"] == ready


def test_a_settled_set_is_left_alone():
    live, counts = worker_set(), Groups(replicas=2, ready=2, updated=2)
    live["status"] = set_status(live, counts, NOW)
    assert set_status(live, counts, "2026-11-16T13:00:00Z") == live["status"]
