"""The chart with each of its switches: whatever it renders is taken by an API server, down to the last field."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cluster.test_crds import install
from tests.packaging.test_chart import BIN, CHARTS

from isvc.api.kinds import KINDS
from isvc.cli import chart, main
from isvc.kube.objects import Object
from isvc.toolkit.client import Client

MONITORING = dict.fromkeys(("serviceMonitor", "prometheusRule", "dashboard"), True)
JOBS_IN_DEFAULT = {"sections": {"localModel": {"jobNamespace": "default"}}}
SWITCHES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no manager": {"manager": {"enabled": False}},
    "no llmisvc": {"llmisvc": {"enabled": False}},
    "no webhooks": {"webhooks": {"enabled": False}},
    "no configuration": {"config": {"create": False}},
    "no runtimes": {"runtimes": {"create": False}},
    "no presets": {"presets": {"create": False}},
    "no budget": {"podDisruptionBudget": {"enabled": False}},
    "policies": {"networkPolicy": {"enabled": True}},
    "priority": {"priorityClass": {"create": True}},
    "given priority": {"priorityClassName": "system-cluster-critical"},
    "given certificates": {"certificates": {"source": "secret", "caBundle": "QUJD"}},
    "cert-manager": {"certificates": {"source": "cert-manager"}},
    "monitoring": {"monitoring": MONITORING},
    "metrics in the clear": {"manager": {"metricsSecure": False}, "monitoring": {"podMonitor": True}},
    "client certificates": {"webhooks": {"clients": {"configMap": "kube-root-ca.crt", "names": ["apiserver"]}}},
    "policies with peers": {
        "networkPolicy": {
            "enabled": True,
            "webhooksFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        }
    },
    "no policy": {"admissionPolicy": {"enabled": False}},
    "roles of people": {"roles": {"kubernetes": True, "kubeflow": True}},
    "a gateway": {"gateway": {"create": True, "className": "envoy"}},
    "of a platform": {
        "image": {"digest": f"sha256:{'0' * 64}"},
        "podSecurityContext": {"runAsUser": 7},
        "llmisvc": {"podLabels": {"team": "ml"}, "extraEnv": [{"name": "A", "value": "b"}]},
    },
    "caches": {"localmodel": {"enabled": True}, "config": JOBS_IN_DEFAULT},
    "caches, one process": {
        "localmodel": {"enabled": True, "inManager": True},
        "config": JOBS_IN_DEFAULT,
        "networkPolicy": {"enabled": True},
        "certificates": {"source": "secret", "caBundle": "QUJD"},
    },
    "namespaces": {"namespaces": ["default"], "webhooks": {"enabled": False}},
    "namespaces, one process": {
        "namespaces": ["default"],
        "webhooks": {"enabled": False},
        "llmisvc": {"inManager": True},
    },
    "placed": {
        "manager": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "extraArgs": ["--zap-devel"]}
    },
}
OTHERS = (
    "cert-manager.io/",
    "monitoring.coreos.com/",
    "gateway.networking.k8s.io/",
)  # kinds of projects that are not installed here


def rendered() -> list[Object]:
    """Everything that any of the switches makes, each once."""
    found = {
        json.dumps(obj, sort_keys=True): obj for values in SWITCHES.values() for obj in chart.render("default", values)
    }
    return [obj for obj in found.values() if not obj["apiVersion"].startswith(OTHERS)]


async def test_whatever_is_rendered_is_valid(client: Client) -> None:
    objects = rendered()
    kinds = {obj["kind"] for obj in objects}
    for definition in (each for each in KINDS if each.resource.kind in kinds):
        await install(client, definition)
    paths = {version: await collections(client, version) for version in {obj["apiVersion"] for obj in objects}}
    checked = {"dryRun": "All", "fieldValidation": "Strict"}
    for obj in objects:
        named = {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['name']}-checked"}}
        await client.request("POST", paths[obj["apiVersion"]][obj["kind"]], params=checked, body=named)
    assert len(objects) > 80


async def collections(client: Client, version: str) -> dict[str, str]:
    """Kind -> path of its objects in the namespace `default`, or in the cluster."""
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    found = (await client.request("GET", group))["resources"]
    return {
        each["kind"]: f"{group}/namespaces/default/{each['name']}" if each["namespaced"] else f"{group}/{each['name']}"
        for each in found
        if "/" not in each["name"]
    }


@pytest.mark.parametrize(
    ("values", "mark"),
    [({"manager": {"enabled": False}}, "kserve-controller-manager"), ({"llmisvc": {"enabled": False}}, "llmisvc")],
    ids=["manager", "llmisvc"],
)
def test_nothing_is_made_for_a_manager_that_is_left_out(values: dict[str, Any], mark: str) -> None:
    everything = {
        "networkPolicy": {"enabled": True},
        "certificates": {"source": "cert-manager"},
        "monitoring": MONITORING,
    }
    left = {
        (obj["kind"], obj["metadata"]["name"])
        for obj in chart.render("kserve", {**everything, **values})
        if obj["metadata"]["name"].startswith(mark)
    }
    assert not left


def test_with_cert_manager_one_authority_signs_both_certificates() -> None:
    objects = chart.render("kserve", {"certificates": {"source": "cert-manager"}})
    by_kind = {(each["kind"], each["metadata"]["name"]): each["spec"] for each in objects if "spec" in each}
    authority = by_kind["Certificate", "kserve-webhook-authority"]
    assert authority["isCA"]
    assert by_kind["Issuer", "kserve-webhook-authority"]["ca"]["secretName"] == authority["secretName"]
    for name in ("serving-cert", "llmisvc-serving-cert"):
        assert by_kind["Certificate", name]["issuerRef"]["name"] == "kserve-webhook-authority"


def by_helm(values: Path) -> tuple[int, str, str]:
    command = [str(BIN / "helm"), "template", "isvc", str(CHARTS / "isvc"), "-f", str(values)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def by_isvc(values: Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["manifests", "-f", str(values)], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("rendered_by", [by_helm, by_isvc])
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("manger: {replicas: 2}", "manger"),
        ("monitoring: {podmonitor: true}", "podmonitor"),
        ("certificates: {source: selfsigned}", "certificates.source"),
        ("certificates: {source: secret}", "certificates.caBundle"),
        ("manager: {replicas: two}", "manager.replicas"),
        ("image: {repository: ''}", "image.repository"),
        ("namespaces: [a, a]", "namespaces"),
        ("{namespaces: [Team_A], webhooks: {enabled: false}}", "namespaces"),
        ("imagePullSecrets: [{}]", "imagePullSecrets"),
        ("config: {sections: {ingres: {urlScheme: https}}}", "config.sections"),
        ("podDisruptionBudget: {maxUnavailable: many}", "podDisruptionBudget.maxUnavailable"),
        ("certificates: {source: secret, caBundle: '%%%'}", "certificates.caBundle"),
        ("config: {sections: {deploy: {defaultDeploymentMode: Serverles}}}", "defaultDeploymentMode"),
        ("runtimes: {exclude: [kserve-torch]}", "runtimes.exclude"),
        ("image: {digest: latest}", "image.digest"),
        ("manager: {extraEnv: [{value: b}]}", "manager.extraEnv"),
        ("gateway: {create: true}", "gateway.create=true needs gateway.className"),
        ("webhooks: {clients: {names: [apiserver]}}", "webhooks.clients.names needs webhooks.clients.configMap"),
        ("networkPolicy: {webhooksFrom: [{ipBlock: {cidr: 10.0.0.0/28}}]}", "need networkPolicy.enabled=true"),
        ("monitoring: {podMonitor: true}", "podMonitor needs manager.metricsSecure=false"),
        ("namespaces: [a]", "namespaces needs webhooks.enabled=false"),
        ("{llmisvc: {inManager: true}, manager: {enabled: false}}", "inManager=true needs manager.enabled=true"),
        (
            "{localmodel: {enabled: true, inManager: true}, manager: {enabled: false}}",
            "localmodel.inManager=true needs manager.enabled=true",
        ),
    ],
)
def test_values_are_refused_alike(
    rendered_by: Callable[[Path], tuple[int, str, str]], values: str, named: str, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text(values)
    code, out, error = rendered_by(tmp_path / "values.yaml")
    assert code != 0
    assert not out
    assert named in error
