"""Which objects a workload consists of, in which shape of service, and where planning stops."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.controllers.llmisvc.workload.workloads import POD, account, children, live, observed_with, workload

from isvc.controllers.llmisvc.observe import service_of_pod
from isvc.controllers.llmisvc.plan import plan as plan_all
from isvc.controllers.llmisvc.workload import plan
from isvc.engine.comparison import Comparison
from isvc.engine.plan import ChildKey, Hold, Want
from isvc.kube.builtin import complete
from isvc.kube.objects import Key, Object, annotations_of, labels_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, ROLE_BINDINGS, ROLES, Resource
from isvc.serving.config import Config
from isvc.serving.llm.labels import workload_selector
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS

SERVICE = workload().raw
SIDECAR = {**POD, "initContainers": [{"name": "llm-d-routing-sidecar"}]}
STOPPED = {"annotations": {"serving.kserve.io/stop": "true"}}
GROUPS = {"more": {}, "worker": POD, "parallelism": {"data": 4, "dataLocal": 2}}


def kinds(**spec: Any) -> list[tuple[str, str]]:
    return list(children(planned(**spec)))


def planned(*served: Any, **spec: Any) -> Any:
    observed = workload(spec.pop("uri", "pvc://c/m"), **spec)
    return plan(observed_with(observed, served=frozenset(served or (LEADER_WORKER_SETS, SCALED_OBJECTS))))


def deployment(**spec: Any) -> Object:
    return children(planned(**spec))["Deployment", spec.pop("name", "llama-kserve")]


def worker_set(name: str = "llama-kserve-mn", **spec: Any) -> Object:
    return children(planned(**{**GROUPS, **spec}))["LeaderWorkerSet", name]


def test_a_server_on_one_node() -> None:
    assert kinds() == [
        ("Secret", "llama-kserve-self-signed-certs"),
        ("Deployment", "llama-kserve"),
        ("Service", "llama-kserve-workload-svc"),
    ]


def test_prompts_read_apart_on_one_node_each() -> None:
    assert kinds(template=SIDECAR, prefill={"template": POD})[1:] == [
        ("ServiceAccount", "llama-kserve"),
        ("Role", "llama-kserve-role"),
        ("RoleBinding", "llama-kserve-rb"),
        ("Deployment", "llama-kserve"),
        ("Deployment", "llama-kserve-prefill"),
        ("Service", "llama-kserve-workload-svc"),
    ]


def test_servers_that_span_nodes() -> None:
    prefill = {"template": POD, "worker": POD, "parallelism": {"pipeline": 2}}
    assert kinds(**GROUPS, prefill=prefill)[1:] == [
        ("ServiceAccount", "llama-kserve-mn"),
        ("ServiceAccount", "llama-kserve-mn-prefill"),
        ("LeaderWorkerSet", "llama-kserve-mn"),
        ("LeaderWorkerSet", "llama-kserve-mn-prefill"),
        ("Service", "llama-kserve-workload-svc"),
    ]


def test_a_stopped_service_wants_nothing() -> None:
    area = planned(metadata=STOPPED)
    assert (area.parts, area.stop) == ((), None)


def test_a_stopped_service_is_stopped_even_if_its_account_does_not_exist() -> None:
    spec = {"template": {**POD, "serviceAccountName": "ghost"}, "accounts": {"ghost": None}}
    assert planned(**spec).stop is not None
    stopped = planned(metadata=STOPPED, **spec)
    assert (stopped.parts, stopped.stop) == ((), None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"template": SIDECAR}, {"template": SIDECAR, "metadata": STOPPED}, id="it is stopped"),
        pytest.param({"template": SIDECAR, "prefill": {"template": POD}}, {}, id="prefill is removed"),
        pytest.param({**GROUPS, "template": SIDECAR}, {}, id="a LeaderWorkerSet becomes a Deployment"),
    ],
)
def test_roles_of_the_routing_sidecar_go_with_it(before: Object, after: Object) -> None:
    def roles(**spec: Any) -> set[Resource]:
        whole = plan_all(observed_with(workload("pvc://c/m", **spec), served=frozenset({LEADER_WORKER_SETS})))
        assert {ROLES, ROLE_BINDINGS} <= whole.parts[-1].kinds, "what is not wanted of these kinds goes"
        return {child.resource for child in whole.wanted()} & {ROLES, ROLE_BINDINGS}

    assert roles(**before) == {ROLES, ROLE_BINDINGS}
    assert roles(**after) == set()


def test_other_workloads_go_also_while_the_router_cannot_be_planned() -> None:
    router = {"gateway": {"refs": [{"name": "nowhere"}]}, "scheduler": {"template": POD}}
    whole = plan_all(workload("pvc://c/m", router=router))
    assert whole.stop is not None

    def goes(resource: Resource, name: str) -> bool:
        decided = [part for part in whole.parts if not isinstance(part.answer, Hold)]
        is_wanted = (resource, name) in {key[:2] for key in whole.wanted_keys()}
        is_covered = any(part.covers(ChildKey(resource, name)) for part in decided)
        return is_covered and not is_wanted and not whole.holds(ChildKey(resource, name))

    assert goes(HORIZONTAL_POD_AUTOSCALERS, "llama-kserve-hpa")
    assert goes(LEADER_WORKER_SETS, "llama-kserve-mn")
    assert goes(DEPLOYMENTS, "llama-kserve-prefill")
    assert goes(ROLES, "llama-kserve-role")
    assert not goes(DEPLOYMENTS, "llama-kserve")
    assert not goes(DEPLOYMENTS, "llama-kserve-router-scheduler"), "nobody knows yet whether it is wanted"
    assert not goes(ROLES, "llama-epp-role")


def test_other_workloads_go_also_while_an_autoscaler_is_refused() -> None:
    parts = [part.name for part in planned(scaling={"maxReplicas": 2, "wva": {"hpa": {}}}).parts]
    autoscaler = parts.index("HorizontalPodAutoscaler llama-kserve-hpa")
    assert parts.index("other workloads") < autoscaler < parts.index("other autoscalers")


def test_the_users_own_account_is_used_and_not_made() -> None:
    accounts = {"mine": account("mine")}
    given = {**SIDECAR, "serviceAccountName": "mine"}
    found = children(planned(template=given, accounts=accounts))
    assert not [name for kind, name in found if kind == "ServiceAccount"]
    assert found["RoleBinding", "llama-kserve-rb"]["subjects"][0]["name"] == "mine"
    assert found["Deployment", "llama-kserve"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_an_account_that_is_made_inherits_secrets_of_the_default_one() -> None:
    default = account("default", "token", imagePullSecrets=[{"name": "pull"}])
    found = children(planned(template=SIDECAR, accounts={"default": default}))["ServiceAccount", "llama-kserve"]
    assert (found["secrets"], found["imagePullSecrets"]) == ([{"name": "token"}], [{"name": "pull"}])


# -- metadata -------------------------------------------------------------------------------------------------------


def test_labels_of_pods_never_reach_the_selector() -> None:
    found = deployment(labels={"team": "a"})
    assert "team" not in found["spec"]["selector"]["matchLabels"]
    assert found["spec"]["template"]["metadata"]["labels"]["team"] == "a"


def test_a_live_selector_is_kept_and_pods_carry_its_labels() -> None:
    selector = {**deployment()["spec"]["selector"]["matchLabels"], "team": "a"}
    there = {"metadata": {"name": "llama-kserve"}, "spec": {"selector": {"matchLabels": selector}}}
    for spec in ({"labels": {"team": "b"}}, {"prefill": {"template": POD}}):
        found = deployment(more={"live": live(DEPLOYMENTS, there)}, **spec)
        assert found["spec"]["selector"]["matchLabels"] == selector
        assert found["spec"]["template"]["metadata"]["labels"].items() >= selector.items()


def test_pods_that_take_the_name_of_another_service_join_its_pool_and_keep_a_selector_of_their_own() -> None:
    joined = {"app.kubernetes.io/name": "llama-nvidia", "app.kubernetes.io/part-of": "fleet"}
    pods_of_other = workload_selector("llama-nvidia")["app.kubernetes.io/name"]
    found = deployment(labels=joined)
    given, selector = found["spec"]["template"]["metadata"]["labels"], found["spec"]["selector"]["matchLabels"]
    assert given.items() >= joined.items()
    assert given.items() >= selector.items()
    assert selector["serving.kserve.io/llminferenceservice"] == "llama"
    assert pods_of_other not in selector.values()
    assert labels_of(found)["app.kubernetes.io/part-of"] == "llminferenceservice", "it is watched by this label"
    pod = {"metadata": {"namespace": "models", "labels": given}}
    assert [*service_of_pod(pod)] == [Key("models", "llama")], "its address belongs into its own certificate"
    for template in ("leaderTemplate", "workerTemplate"):
        group = worker_set(labels=joined)["spec"]["leaderWorkerTemplate"][template]
        assert labels_of(group).items() >= joined.items()
    there = live(DEPLOYMENTS, found)
    assert deployment(labels=joined, more={"live": there})["spec"]["selector"]["matchLabels"] == selector


def test_a_label_that_a_live_selector_asks_for_cannot_change() -> None:
    stop = planned(labels={"app.kubernetes.io/name": "other"}, more={"live": live(DEPLOYMENTS, deployment())}).stop
    assert stop is not None
    assert "selector of Deployment llama-kserve asks for 'llama' and is immutable" in stop.message


def test_of_the_services_metadata_only_what_others_read_on_workloads_is_passed_on() -> None:
    metadata = {
        "labels": {"kueue.x-k8s.io/queue-name": "q", "cost": "7"},
        "annotations": {"prometheus.io/port": "8000", "note": "n", "leaderworkerset.sigs.k8s.io/x": "y"},
    }
    found = deployment(
        metadata=metadata, annotations={"serving.kserve.io/model-based-routing-enabled": "true", "a": "b"}
    )
    assert labels_of(found)["kueue.x-k8s.io/queue-name"] == "q"
    assert "cost" not in labels_of(found)
    assert annotations_of(found) == {"prometheus.io/port": "8000"}
    assert annotations_of(found["spec"]["template"]) == {"prometheus.io/port": "8000", "a": "b"}
    assert "leaderworkerset.sigs.k8s.io/x" in annotations_of(worker_set(metadata=metadata))


def test_annotations_that_leave_the_pod_template_leave_the_pods() -> None:
    (child,) = (
        child
        for part in planned(annotations={"a": "b"}).parts
        if isinstance(part.answer, Want)
        for child in part.answer.children
        if child.resource == DEPLOYMENTS
    )
    there = complete(child.manifest)
    assert there is not None
    there["metadata"]["annotations"] = {"of": "somebody else"}
    assert not Comparison(child, there, "isvc").drifted, "on the object itself they stay"
    annotations_of(there["spec"]["template"])["left"] = "behind"
    comparison = Comparison(child, there, "isvc")
    assert comparison.drifted
    assert annotations_of(comparison.replacement(SERVICE)["spec"]["template"]) == {"a": "b"}


# -- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parallelism", "size"),
    [({"data": 16, "dataLocal": 8}, 2), ({"data": 4}, 4), ({"pipeline": 3, "tensor": 8}, 3), ({"tensor": 8}, None)],
)
def test_a_group_is_as_large_as_the_model_is_spread(parallelism: Object, size: int | None) -> None:
    assert worker_set(parallelism=parallelism)["spec"]["leaderWorkerTemplate"].get("size") == size


def test_groups_of_data_parallel_prefill_stay_together() -> None:
    prefill = {"template": POD, "worker": POD, "parallelism": {"data": 4, "dataLocal": 1}}
    found = worker_set("llama-kserve-mn-prefill", prefill=prefill)["spec"]["leaderWorkerTemplate"]
    assert found["subGroupPolicy"] == {"subGroupSize": 4}
    assert "subGroupPolicy" not in worker_set(prefill=prefill)["spec"]["leaderWorkerTemplate"]


def test_workers_answer_requests_where_there_is_no_leader() -> None:
    found = worker_set(template=None)["spec"]["leaderWorkerTemplate"]
    assert "leaderTemplate" not in found
    assert labels_of(found["workerTemplate"])["kserve.io/component"] == "workload"
    assert "kserve.io/component" not in labels_of(worker_set()["spec"]["leaderWorkerTemplate"]["workerTemplate"])


@pytest.mark.parametrize(
    ("given", "of_deployment", "of_group"),
    [
        ({}, None, None),
        ({"maxSurge": 1}, {"maxSurge": 1}, {"maxUnavailable": 1, "maxSurge": 1}),
        ({"maxUnavailable": 0, "maxSurge": "50%"}, {"maxUnavailable": 0, "maxSurge": "50%"}, None),
    ],
)
def test_how_new_pods_replace_old_ones(given: Object, of_deployment: Object | None, of_group: Object | None) -> None:
    strategy = deployment(rolloutStrategy=given)["spec"].get("strategy")
    assert strategy == ({"type": "RollingUpdate", "rollingUpdate": of_deployment} if of_deployment else None)
    rollout = worker_set(rolloutStrategy=given)["spec"]["rolloutStrategy"]
    assert rollout.get("rollingUpdateConfiguration") == (of_group or given or None)


def test_the_service_speaks_as_the_servers_do() -> None:
    ingress = msgspec.structs.replace(Config().ingress, enable_llm_inference_service_tls=True)
    secure = observed_with(workload("pvc://c/m"), config=msgspec.structs.replace(Config(), ingress=ingress))
    for observed, protocol in ((workload("pvc://c/m"), "http"), (secure, "https")):
        port = children(plan(observed))["Service", "llama-kserve-workload-svc"]["spec"]["ports"][0]
        assert (port["name"], port["appProtocol"], port["port"]) == (protocol, protocol, 8000)


# -- where it stops -------------------------------------------------------------------------------------------------


def test_a_missing_account_stops_before_anything_runs() -> None:
    area = planned(template={**POD, "serviceAccountName": "ghost"}, accounts={"ghost": None})
    assert list(children(area)) == [("Secret", "llama-kserve-self-signed-certs")]
    assert area.stop.condition == "WorkerWorkloadReady"
    assert area.stop.message.endswith('models/ghost: ServiceAccount "ghost" not found')


def test_a_model_that_cannot_be_brought_stops_the_servers() -> None:
    area = planned(uri="gs://b/m")
    assert area.stop.condition == "MainWorkloadReady"
    assert area.stop.reason == "ReconcileSingleNodeWorkloadError"
    assert area.stop.message.endswith("unsupported schema in model URI: gs://b/m")


def test_a_missing_kind_is_named() -> None:
    area = planned(SCALED_OBJECTS, **GROUPS)
    assert 'no matches for kind "LeaderWorkerSet"' in area.stop.message
    area = planned(LEADER_WORKER_SETS, scaling={"maxReplicas": 2, "keda": {"triggers": []}})
    assert area.stop.reason == "ScalingCRDNotFound"
    assert [event.reason for event in area.events] == ["ScalingCRDNotFound"]
    assert ("Service", "llama-kserve-workload-svc") in children(area)


def trusting(**spec: Any) -> Any:
    """The plan where downloads trust the authorities in the ConfigMap `house`."""
    storage = msgspec.structs.replace(Config().storage_initializer, ca_bundle_config_map_name="house")
    config = msgspec.structs.replace(Config(), storage_initializer=storage)
    bundle = spec.pop("bundle", None)
    return plan(observed_with(workload("pvc://c/m", **spec), config=config, ca_bundle=bundle))


def test_a_bundle_that_is_not_there_stops_everything() -> None:
    missing = trusting()
    assert missing.stop is not None
    assert "configmap house does not exist in kserve" in missing.stop.message


def test_authorities_are_copied_for_a_service_that_runs() -> None:
    bundle = {"data": {"cabundle.crt": "PEM"}}
    assert children(trusting(bundle=bundle))["ConfigMap", "global-ca-bundle"]["data"] == bundle["data"]
    assert children(trusting(bundle=bundle, metadata=STOPPED)) == {}
