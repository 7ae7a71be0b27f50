"""`isvc preflight` on a real API server: what is wrong is named, with a remedy, and nothing is written."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner, Result
from tests import definitions
from tests.cluster.lifecycles.stage import Platform, foreign_crd, running, service, set_up
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli import main
from isvc.insight.preflight.finding import Level
from isvc.insight.preflight.kinds import check_projects, check_version
from isvc.insight.preflight.others import check_local_models, check_managers
from isvc.insight.preflight.pod_programs import check_metric_aggregation
from isvc.kube.conditions import is_true
from isvc.kube.errors import NotFound
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from isvc.kube.timestamps import micro_timestamp
from isvc.serving.config import Config
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.client import Client, kubeconfig

WEBHOOK = "preflight.example.com"


async def preflight(cluster, namespace: str, *arguments: str) -> Result:
    command = ["preflight", "--kubeconfig", str(cluster.kubeconfig), "-n", namespace, *arguments]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


def manager() -> dict:
    labels = {"app": "manager"}
    pod = {"containers": [{"name": "manager", "image": "kserve/kserve-controller:v0.16.0"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kserve-controller-manager"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def webhook(namespace: str) -> dict:
    rule = {
        "apiGroups": ["example.com"],
        "apiVersions": ["v1"],
        "resources": ["things"],
        "operations": ["CREATE"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK},
        "webhooks": [
            {
                "name": WEBHOOK,
                "clientConfig": {"service": {"name": "gone", "namespace": namespace}},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


async def test_what_is_in_the_way_is_named(cluster, client, namespace) -> None:
    await definitions.install(client, foreign_crd(KNATIVE_SERVICES))
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kserve-controller-manager-leader-lock"},
        "spec": {
            "holderIdentity": "somebody",
            "leaseDurationSeconds": 600,
            "renewTime": micro_timestamp(datetime.now(UTC)),
        },
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inferenceservice-config"}}
    await client.create(DEPLOYMENTS, manager(), namespace)
    await client.create(LEASES, lease, namespace)
    await client.create(CONFIG_MAPS, {**config, "data": {"ingress": "{not json"}}, namespace)
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, webhook(namespace))
    try:
        result = await preflight(cluster, namespace, "-o", "json")
        text = await preflight(cluster, namespace)
    finally:
        await client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, WEBHOOK)
    assert result.exit_code == 1
    found = {(each["check"], each["level"]): each for each in json.loads(result.stdout)}
    assert found["kubernetes", "ok"]
    assert found["Knative Serving", "ok"]["message"] == "installed"
    assert "kserve/kserve-controller:v0.16.0" in found["other managers", "warning"]["message"]
    assert "is held by somebody" in found["leases", "warning"]["message"]
    assert "ingress" in found["configuration", "error"]["message"]
    gone = f"Service {namespace}/gone does not exist: writes of things are refused"
    assert any(each["message"].endswith(gone) for each in json.loads(result.stdout) if each["check"] == "webhooks")
    assert found["permissions", "ok"]
    assert all(each["remedy"] for (_, level), each in found.items() if level != Level.OK)
    assert "✓ Knative Serving: installed\n" in text.stdout


async def test_a_cluster_where_nothing_is_in_the_way(cluster, namespace, client) -> None:
    result = await preflight(cluster, namespace)
    assert result.exit_code == 0, result.output
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "inferenceservice-config", namespace)


@pytest.mark.parametrize(
    ("wanted", "image", "level"),
    [("true", "kserve/qpext:v0.20.0", Level.OK), ("true", "queue:1", Level.WARNING), ("false", "queue:1", Level.OK)],
)
def test_who_adds_up_metrics_on_knative_is_said(wanted: str, image: str, level: Level) -> None:
    settings = {"ingress": '{"ingressGateway": "a/b"}'}
    config = Config.parse({**settings, "metricsAggregator": json.dumps({"enableMetricAggregation": wanted})})
    [finding] = check_metric_aggregation(config, {"data": {"queue-sidecar-image": image}})
    assert finding.level is level
    assert "kserve/qpext" in finding.message
    assert image in finding.message
    assert not [*check_metric_aggregation(config, None)]


def test_what_is_too_old_is_an_error() -> None:
    assert check_version(("1", "28+")).level is Level.ERROR
    assert check_version(("1", "35")).level is Level.OK
    older = foreign_crd(KNATIVE_SERVICES._replace(version="v1beta1"))
    knative = next(finding for finding in check_projects([older]) if finding.check == "Knative Serving")
    assert knative.level is Level.ERROR
    assert knative.message == "CRD services.serving.knative.dev serves v1beta1, and not v1"


async def test_take_over(cluster, client, namespace):
    """What is as planned is not mentioned; of what is not, it says which child would be written and who restarts."""
    platform = Platform(client)

    async def ready() -> bool:
        await platform.make_ready(namespace)
        status = (await client.get(INFERENCE_SERVICES, "life", namespace)).get("status") or {}
        return is_true(status.get("conditions") or (), "Ready")

    await set_up(client, namespace, "Standard")
    await client.create(INFERENCE_SERVICES, service(namespace))
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace):
        await until(ready, "the service is ready", every=0.2)
    before = await preflight(cluster, namespace, "--takeover")
    assert f"InferenceService {namespace}/life" not in before.output
    assert re.search(r"\(podPrograms\): pods of \d+ services? would be made differently", before.output)
    container = {"name": "kserve-container", "image": "somebody-elses:1"}
    bent = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await client.patch(DEPLOYMENTS, "life-predictor", bent, namespace)
    after = await preflight(cluster, namespace, "--takeover")
    assert after.exit_code == 1
    assert f"InferenceService {namespace}/life" in after.output
    assert "Deployment life-predictor would be changed; 1 pod would restart" in after.output
    planned = await preflight(cluster, namespace, "--takeover", "-o", "json")
    assert planned.exit_code == 1
    said = json.loads(planned.stdout)
    assert {each["check"] for each in said["findings"]} >= {"kubernetes", "permissions"}
    [life] = [each for each in said["takeover"] if each["namespace"] == namespace]
    assert (life["kind"], life["name"], life["podsToRestart"]) == ("InferenceService", "life", 1)
    assert ("Deployment", "life-predictor") in {(child["kind"], child["name"]) for child in life["children"]}
    assert isinstance(said["withPodPrograms"], list)


def workload(kind: str, plane: str, **spec: object) -> dict:
    metadata = {"name": plane, "namespace": "kserve", "labels": {"control-plane": plane}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_caches_that_nobody_takes_care_of_are_named() -> None:
    config = Config.parse({"localModel": '{"enabled": true, "jobNamespace": "jobs"}'})
    manager, agent = (
        workload("Deployment", "kserve-localmodel-controller-manager", replicas=1),
        workload("DaemonSet", "kserve-localmodelnode-agent"),
    )
    assert [*check_local_models(Config(), [])] == []
    assert [*check_local_models(config, [manager, agent])] == []
    (missing,) = check_local_models(config, [agent, {**manager, "spec": {"replicas": 0}}])
    assert (missing.level, "claims that nobody makes" in missing.message) == (Level.ERROR, True)
    (missing,) = check_local_models(config, [manager])
    assert "kserve-localmodelnode-agent" in missing.message


def test_agents_of_nodes_are_among_the_programs_that_still_run() -> None:
    (found,) = check_managers([workload("DaemonSet", "kserve-localmodelnode-agent")])
    assert (found.level, "download to the same folder" in found.remedy) == (Level.WARNING, True)
