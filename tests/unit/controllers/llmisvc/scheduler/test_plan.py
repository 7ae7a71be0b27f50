"""The scheduler as a whole: its children, what keeps them from being made, and how ready they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controllers.llmisvc.services import NAMESPACE, observe, service

from isvc.controllers.llmisvc import scheduler
from isvc.controllers.llmisvc.area import Applied, Area
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.engine.plan import ChildKey, Hold, Retire, Want
from isvc.kube.conditions import find
from isvc.kube.objects import Key, Object, name_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, SERVICE_ACCOUNTS
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import INFERENCE_POOLS

PORTS = [{"name": "grpc", "containerPort": 9002}, {"name": "own", "containerPort": 1}]
DEPLOYMENT = "llama-kserve-router-scheduler"


def scheduled(**given: Any) -> Object:
    template = {"containers": [{"name": "main", "ports": PORTS}]}
    pool = {"spec": {"targetPorts": [{"number": 8000}], "endpointPickerRef": {"name": "llama-epp-service"}}}
    return {
        "model": {"uri": "hf://a/b"},
        "router": {"scheduler": {"template": template, "pool": pool, **given}},
    }


BINDING: Object = {"metadata": {"name": "models-llama-epp-auth-rb"}}


def children(observed: Observed) -> dict[str, Object]:
    area = scheduler.plan(observed)
    assert area.stop is None
    wanted = [part.answer for part in area.parts]
    return {
        f"{child.resource}/{name_of(child.manifest)}": child.manifest
        for answer in wanted
        if isinstance(answer, Want)
        for child in answer.children
    }


def test_a_scheduler_has_an_account_with_permissions_a_picker_with_a_service_and_pools_of_both_groups() -> None:
    assert list(children(observe(scheduled()))) == [
        "serviceaccounts/llama-epp-sa",
        "clusterrolebindings.rbac.authorization.k8s.io/models-llama-epp-auth-rb",
        "roles.rbac.authorization.k8s.io/llama-epp-role",
        "rolebindings.rbac.authorization.k8s.io/llama-epp-rb",
        f"deployments.apps/{DEPLOYMENT}",
        "services/llama-epp-service",
        "inferencepools.inference.networking.k8s.io/llama-inference-pool",
        "inferencepools.inference.networking.x-k8s.io/llama-inference-pool",
    ]


def test_where_gateways_know_only_the_newer_pools_there_are_only_these() -> None:
    observed = replace(observe(scheduled()), served=frozenset({INFERENCE_POOLS}))
    assert not any("x-k8s.io/llama" in key for key in children(observed))


@pytest.mark.parametrize("spec", [{}, {"router": {}}, {"router": {"scheduler": {"pool": {"ref": {"name": "p"}}}}}])
def test_without_a_scheduler_of_ours_nothing_of_it_stays_not_even_cluster_wide(spec: Object) -> None:
    area = scheduler.plan(observe(spec, bindings=[BINDING]))
    assert [(part.answer, part.found) for part in area.parts] == [
        (Retire("there is no scheduler"), ((CLUSTER_ROLE_BINDINGS, BINDING),))
    ]


def test_without_rights_for_the_cluster_the_picker_is_not_bound_to_a_cluster_role() -> None:
    everywhere, within = (
        children(observe(scheduled())),
        children(observe(scheduled(), environment=Environment(cluster_wide=False))),
    )
    assert everywhere.keys() - within.keys() == {f"{CLUSTER_ROLE_BINDINGS}/models-llama-epp-auth-rb"}
    assert within.keys() <= everywhere.keys()


def test_several_pickers_elect_a_leader() -> None:
    made = children(observe(scheduled(replicas=2)))[f"deployments.apps/{DEPLOYMENT}"]
    assert made["spec"]["template"]["spec"]["containers"][0]["args"][0] == "--ha-enable-leader-election"
    assert made["spec"]["replicas"] == 2


def test_labels_of_the_user_reach_the_pods_and_never_the_selector() -> None:
    given = {"labels": {"team": "routing"}}
    made = children(observe(scheduled(**given)))[f"deployments.apps/{DEPLOYMENT}"]
    assert "team" not in made["spec"]["selector"]["matchLabels"]
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "routing"


def test_a_selector_that_is_there_stays_and_pods_carry_what_it_asks_for() -> None:
    selector = {"app.kubernetes.io/name": "llama", "team": "old"}
    live = {"spec": {"selector": {"matchLabels": selector}}}
    observed = observe(scheduled(labels={"team": "new"}), live={(DEPLOYMENTS, DEPLOYMENT): live})
    made = children(observed)[f"deployments.apps/{DEPLOYMENT}"]
    assert made["spec"]["selector"]["matchLabels"] == selector
    assert made["spec"]["template"]["metadata"]["labels"]["team"] == "old"


def test_the_service_has_the_ports_that_gateways_ask_for() -> None:
    made = children(observe(scheduled()))["services/llama-epp-service"]
    assert made["spec"]["ports"] == [{"name": "grpc", "port": 9002, "targetPort": "grpc", "protocol": "TCP"}]


def test_the_own_account_takes_over_what_the_servers_account_brings_for_downloads() -> None:
    servers: Object = {
        "metadata": {"name": "servers", "annotations": {"eks.amazonaws.com/role-arn": "arn"}},
        "secrets": [{"name": "s"}],
        "imagePullSecrets": [{"name": "p"}],
    }
    spec = {**scheduled(), "template": {"serviceAccountName": "servers"}}
    made = children(observe(spec, accounts={"servers": servers}.get))["serviceaccounts/llama-epp-sa"]
    assert made["metadata"]["annotations"] == servers["metadata"]["annotations"]
    assert (made["secrets"], made["imagePullSecrets"]) == (servers["secrets"], servers["imagePullSecrets"])


def test_pull_secrets_that_the_cluster_added_to_the_own_account_stay() -> None:
    default = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "of-default"}]}
    live = {"imagePullSecrets": [{"name": "of-default"}, {"name": "of-cluster"}]}
    accounts = {"default": default}.get
    observed = observe(scheduled(), live={(SERVICE_ACCOUNTS, "llama-epp-sa"): live}, accounts=accounts)
    assert children(observed)["serviceaccounts/llama-epp-sa"]["imagePullSecrets"] == live["imagePullSecrets"]


def test_an_account_that_does_not_exist_stops_the_scheduler() -> None:
    template = {"serviceAccountName": "nobody", "containers": []}
    stop = scheduler.plan(observe(scheduled(template=template))).stop
    assert stop is not None
    assert (stop.condition, stop.reason) == ("SchedulerWorkloadReady", "SchedulerReconcileError")
    assert "service account models/nobody" in stop.message


def test_flags_that_cannot_be_migrated_stop_the_scheduler() -> None:
    template = {"containers": [{"name": "main", "args": ["--config-file", "/f", "--lora-info-metric=l"]}]}
    given = {"template": template, "annotations": {"app.kubernetes.io/version": "0.9.0"}}
    area = scheduler.plan(observe(scheduled(**given)))
    assert area.stop is not None
    assert "convert to --config-text or remove the deprecated flags" in area.stop.message
    *made, held = area.parts
    assert len(made) == 4  # what comes before is made
    assert isinstance(held.answer, Hold)
    assert held.covers(ChildKey(DEPLOYMENTS, DEPLOYMENT))


def test_nothing_of_the_scheduler_changes_while_references_are_wrong_unless_the_service_is_stopped() -> None:
    spec = scheduled()
    spec["router"]["gateway"] = {"refs": [{"name": "nowhere"}]}
    area = scheduler.plan(observe(spec, bindings=[BINDING]))
    assert area.stop is not None
    assert [type(part.answer) for part in area.parts] == [Hold]
    stopped = service(metadata={"annotations": {"serving.kserve.io/stop": "true"}})
    (part,) = scheduler.plan(observe(spec, raw=stopped, bindings=[BINDING])).parts
    assert part.found == ((CLUSTER_ROLE_BINDINGS, BINDING),)


def test_a_tokenizer_comes_with_what_asks_for_it_and_speaks_tls_where_servers_do() -> None:
    inline = {"kind": "EndpointPickerConfig", "plugins": [{"type": "token-producer"}]}
    given = {"config": {"inline": inline}, "annotations": {"app.kubernetes.io/version": "0.9.0"}}
    observed = observe(scheduled(tokenizer={"template": {"containers": [{"name": "main"}]}}, **given))
    observed = replace(observed, settings=replace(observed.settings, enable_tls=True))
    made = children(observed)
    assert {"deployments.apps/llama-tokenizer", "services/llama-tokenizer"} <= made.keys()
    arguments = made[f"deployments.apps/{DEPLOYMENT}"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "https://llama-tokenizer.models.svc.cluster.local:8000" in arguments[1]


def test_the_plugin_that_was_split_is_warned_of() -> None:
    inline = {"kind": "EndpointPickerConfig", "plugins": [{"type": "precise-prefix-cache-scorer"}]}
    tokenizer = {"template": {"containers": [{"name": "main"}]}}
    (event,) = scheduler.plan(observe(scheduled(config={"inline": inline}, tokenizer=tokenizer))).events
    assert event.reason == "DeprecatedPlugin"


def test_a_latency_producer_from_a_config_map_is_warned_of_as_nobody_answers_it() -> None:
    inline = "kind: EndpointPickerConfig\nplugins: [{type: predicted-latency-producer}]"
    observed = observe(scheduled(config={"inline": inline}))
    assert scheduler.plan(observed).events == ()
    merged = replace(observed.merged, scheduler_config_map=Key(NAMESPACE, "settings"))
    (event,) = scheduler.plan(replace(observed, merged=merged)).events
    assert event.reason == "LatencyPredictorConfigRef"
    assert "ConfigMap models/settings" in event.message


# -- the status -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("False", "Progressing", "Deployment rollout in progress")),
        ({"availableReplicas": 1}, ("True", None, None)),
        (
            {"conditions": [{"type": "Available", "status": "False", "reason": "Few", "message": "too few"}]},
            ("False", "Few", "too few"),
        ),
        ({"conditions": [{"type": "Available", "status": "True"}]}, ("True", None, None)),
        (
            {
                "conditions": [
                    {"type": "Available", "status": "False", "reason": "Few"},
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "slow"},
                ]
            },
            ("False", "ProgressDeadlineExceeded", "slow"),
        ),
    ],
)
def test_one_picker_that_answers_is_enough(status: Object, expected: tuple[str, ...]) -> None:
    observed = observe(scheduled(), live={(DEPLOYMENTS, DEPLOYMENT): {"status": status}})
    condition = reported(observed, scheduler.plan(observed), "SchedulerWorkloadReady")
    assert (condition["status"], condition.get("reason"), condition.get("message")) == expected


def reported(observed: Observed, area: Area, condition: str) -> Object:
    edit = StatusEdit(observed.status, observed.now)
    scheduler.report(edit, area, Applied(observed))
    return find(edit.result()["conditions"], condition) or {}


@pytest.mark.parametrize("which", ["containers", "initContainers"])
@pytest.mark.parametrize(("image", "bound"), [("ghcr.io/llm-d/epp:1", True), ("evil.test/epp:1", False)])
def test_only_trusted_images_may_ask_who_somebody_is(image: str, bound: bool, which: str) -> None:
    spec = scheduled()
    pod = spec["router"]["scheduler"]["template"]
    pod["containers"][0]["image"] = "ghcr.io/llm-d/epp:1"
    pod[which] = [*(pod.get(which) or ()), {"name": "beside", "image": image}]
    environment = Environment(trusted_images=("ghcr.io/llm-d/",))
    observed = observe(spec, bindings=[BINDING], environment=environment)
    assert any("clusterrolebindings" in child for child in children(observed)) is bound
    goes = [live for part in scheduler.plan(observed).parts for _, live in part.found]
    assert goes == ([] if bound else [BINDING])
