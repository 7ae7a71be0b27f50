"""Which webhooks an API server asks, and what it makes of their answers; the same on every API server."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.waiting import until

from isvc.kube.errors import ApiError, InternalError, Invalid, NotFound
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.wire.x509.issue import issue_authority, issue_serving

Json = dict[str, Any]
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


class Hooks:
    """Webhooks behind one HTTPS server. Each is a function from an admission request to a response."""

    def __init__(self, port: int, bundle: bytes) -> None:
        self.port = port
        self.bundle = base64.b64encode(bundle).decode()
        self.leaf = b""
        self.answers: dict[str, Callable[[Json], Json]] = {}
        self.asked: list[tuple[str, Json]] = []

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        name, question = request.path.strip("/"), review["request"]
        self.asked.append((name, question))
        response = {"uid": question["uid"], **self.answers[name](question)}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def of(self, name: str) -> list[Json]:
        return [question for asked, question in self.asked if asked == name]

    def spec(self, name: str, namespace: str, **fields: Any) -> Json:
        return {
            "name": f"{name}.isvc.example",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "clientConfig": {"url": f"https://localhost:{self.port}/{name}", "caBundle": self.bundle},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [RULE],
            **fields,
        }


def allow(_: Json) -> Json:
    return {"allowed": True}


def adds(key: str) -> Callable[[Json], Json]:
    """A mutating webhook that counts in a label how often it saw the object."""

    def answer(question: Json) -> Json:
        seen = int((question["object"]["metadata"].get("labels") or {}).get(key, 0))
        labels = {**(question["object"]["metadata"].get("labels") or {}), key: str(seen + 1)}
        patch = json.dumps([{"op": "add", "path": "/metadata/labels", "value": labels}])
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}

    return answer


def refuses(question: Json) -> Json:
    subject = question["object"] or question["oldObject"]
    if "no" in (subject.get("data") or {}):
        return {"allowed": False, "status": {"code": 418, "message": "teapots say no", "reason": "Teapot"}}
    return (
        {"allowed": True, "warnings": ["close call"]} if "maybe" in (subject.get("data") or {}) else {"allowed": True}
    )


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hooks]:
    now = datetime.now(UTC)
    authority = issue_authority("test", now)
    serving = issue_serving(authority, ["localhost"], now)
    (tmp_path / "tls.crt").write_bytes(serving.certificate)
    (tmp_path / "tls.key").write_bytes(serving.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    hooks = Hooks(0, authority.certificate)
    hooks.leaf = serving.certificate
    application = web.Application()
    application.router.add_post("/{name}", hooks.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hooks.port = runner.addresses[0][1]
    yield hooks
    await runner.cleanup()


@pytest.fixture
async def register(client, hooks: Hooks, namespace: str) -> AsyncIterator[Callable[..., Any]]:
    """Registers webhooks and waits until the API server asks them, which a canary of each registration tells."""
    made: list[tuple[Resource, str]] = []

    async def register(resource: Resource, *specs: Json) -> None:
        name, canary = f"{len(made)}-{namespace}", f"canary-{len(made)}"
        hooks.answers[canary] = allow
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        await client.create(resource, {**obj, "webhooks": [hooks.spec(canary, namespace), *specs]})
        made.append((resource, name))

        async def asked() -> bool:
            await client.create(CONFIG_MAPS, config_map(namespace, canary), dry_run=True)
            return bool(hooks.of(canary))

        await until(asked)
        hooks.asked.clear()

    yield register
    for resource, name in made:
        await client.delete(resource, name)


def config_map(namespace: str, name: str, *, labels: Json | None = None, **data: str) -> Json:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_a_refusal_keeps_its_code_reason_and_words(client, namespace, hooks, register):
    hooks.answers["judge"] = refuses
    await register(VALIDATING_WEBHOOK_CONFIGURATIONS, hooks.spec("judge", namespace))
    with pytest.raises(ApiError) as refused:
        await client.create(CONFIG_MAPS, config_map(namespace, "a", no="x"))
    assert refused.value.status_code == 418
    assert refused.value.message == 'admission webhook "judge.isvc.example" denied the request: teapots say no'
    created = await client.create(CONFIG_MAPS, config_map(namespace, "a", yes="x"))
    question = hooks.of("judge")[-1]
    assert question["operation"] == "CREATE"
    assert question["name"] == "a"
    assert question["namespace"] == namespace
    assert question["oldObject"] is None
    assert question["object"]["data"] == {"yes": "x"}
    assert question["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert question["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert question["options"]["kind"] == "CreateOptions"
    assert "system:masters" in question["userInfo"]["groups"]
    with pytest.raises(ApiError, match="teapots say no"):
        await client.update(CONFIG_MAPS, {**created, "data": {"no": "x"}})
    assert hooks.of("judge")[-1]["oldObject"]["data"] == {"yes": "x"}
    await client.delete(CONFIG_MAPS, "a", namespace)
    assert hooks.of("judge")[-1]["operation"] == "DELETE"
    assert hooks.of("judge")[-1]["object"] is None


async def test_mutations_are_seen_by_those_after_and_by_those_who_ask_again(client, namespace, hooks, register):
    hooks.answers |= {"first": adds("first"), "second": adds("second")}
    first = hooks.spec("first", namespace, reinvocationPolicy="IfNeeded")
    second = hooks.spec("second", namespace)
    await register(MUTATING_WEBHOOK_CONFIGURATIONS, first, second)
    created = await client.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert created["metadata"]["labels"] == {"first": "2", "second": "1"}
    seen = [question["object"]["metadata"].get("labels") for question in hooks.of("first")]
    assert seen == [None, {"first": "1", "second": "1"}]


async def test_selectors_and_conditions_choose_who_is_asked(client, namespace, hooks, register):
    hooks.answers |= {"labelled": adds("labelled"), "elsewhere": adds("elsewhere"), "conditional": adds("conditional")}
    conditions = [{"name": "has-key", "expression": "has(object.data) && 'wanted' in object.data"}]
    await register(
        MUTATING_WEBHOOK_CONFIGURATIONS,
        hooks.spec("labelled", namespace, objectSelector={"matchLabels": {"pick": "me"}}),
        hooks.spec("elsewhere", "no-such-namespace"),
        hooks.spec("conditional", namespace, matchConditions=conditions),
    )
    plain = await client.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert "labels" not in plain["metadata"]
    picked = await client.create(CONFIG_MAPS, config_map(namespace, "b", labels={"pick": "me"}, wanted="x"))
    assert picked["metadata"]["labels"] == {"pick": "me", "labelled": "1", "conditional": "1"}


async def test_a_webhook_that_cannot_be_asked(client, namespace, hooks, register):
    gone = {"url": "https://localhost:1/gone", "caBundle": hooks.bundle}
    ignored = hooks.spec("gone", namespace, clientConfig=gone, failurePolicy="Ignore")
    await register(VALIDATING_WEBHOOK_CONFIGURATIONS, ignored)
    await client.create(CONFIG_MAPS, config_map(namespace, "a"))
    hooks.answers["broken"] = lambda question: {"allowed": True, "uid": "another"}
    await register(
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        hooks.spec("broken", namespace, objectSelector={"matchLabels": {"ask": "broken"}}),
        hooks.spec("gone", namespace, clientConfig=gone, objectSelector={"matchLabels": {"ask": "gone"}}),
    )
    with pytest.raises(InternalError) as failed:
        await client.create(CONFIG_MAPS, config_map(namespace, "b", labels={"ask": "gone"}))
    words = 'Internal error occurred: failed calling webhook "gone.isvc.example": failed to call webhook: Post "https:'
    assert failed.value.message.startswith(words)
    assert failed.value.message.endswith("connect: connection refused")
    with pytest.raises(InternalError, match="received invalid webhook response: expected response"):
        await client.create(CONFIG_MAPS, config_map(namespace, "b", labels={"ask": "broken"}))


async def test_a_large_answer_is_read_to_its_end(client, namespace, hooks, register):
    patch = json.dumps([{"op": "add", "path": "/data/large", "value": "x" * 300_000}])
    encoded = base64.b64encode(patch.encode()).decode()
    hooks.answers["large"] = lambda question: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
    chosen = {"matchLabels": {"make": "large"}}
    large = hooks.spec("large", namespace, objectSelector=chosen, failurePolicy="Ignore")
    await register(MUTATING_WEBHOOK_CONFIGURATIONS, large)
    for name in ("a", "b", "c"):
        live = await client.create(CONFIG_MAPS, config_map(namespace, name, labels={"make": "large"}, small="y"))
        assert len(live["data"]["large"]) == 300_000


async def test_a_bundle_may_be_the_certificate_of_the_webhook_itself(client, namespace, hooks, register):
    hooks.bundle = base64.b64encode(hooks.leaf).decode()
    hooks.answers["leaf"] = adds("leaf")
    await register(MUTATING_WEBHOOK_CONFIGURATIONS, hooks.spec("leaf", namespace))
    live = await client.create(CONFIG_MAPS, config_map(namespace, "a"))
    assert live["metadata"]["labels"] == {"leaf": "1"}


async def test_a_dry_run_needs_a_webhook_without_side_effects(client, namespace, hooks, register):
    hooks.answers["busy"] = allow
    busy = hooks.spec("busy", namespace, sideEffects="NoneOnDryRun", objectSelector={"matchLabels": {"dry": "yes"}})
    await register(VALIDATING_WEBHOOK_CONFIGURATIONS, busy)
    await client.create(CONFIG_MAPS, config_map(namespace, "a", labels={"dry": "yes"}), dry_run=True)
    assert hooks.of("busy")[-1]["dryRun"] is True


def crd(group: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"plural": "gizmos", "kind": "Gizmo"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": f"gizmos.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


async def test_another_version_of_the_same_kind_matches_too(client, namespace, hooks, register):
    group = f"{namespace}.isvc.dev"
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(group))
    hooks.answers |= {"equivalent": adds("equivalent"), "exact": adds("exact")}
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["gizmos"]}
    await register(
        MUTATING_WEBHOOK_CONFIGURATIONS,
        hooks.spec("equivalent", namespace, rules=[rule]),
        hooks.spec("exact", namespace, rules=[rule], matchPolicy="Exact"),
    )
    resource = Resource(group, "v2", "gizmos", "Gizmo")
    gizmo = {"apiVersion": f"{group}/v2", "kind": "Gizmo", "metadata": {"name": "g", "namespace": namespace}}

    async def served() -> Json | None:
        try:
            return await client.create(resource, gizmo)
        except NotFound:
            return None

    created = await until(served)
    assert created["metadata"]["labels"] == {"equivalent": "1"}
    question = hooks.of("equivalent")[-1]
    assert question["kind"]["version"] == "v1"
    assert question["object"]["apiVersion"] == f"{group}/v1"
    assert question["requestKind"]["version"] == "v2"
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"gizmos.{group}")


async def test_configurations_are_checked(client, hooks):
    spec = {**hooks.spec("x", "y", sideEffects="Some"), "name": "x"}
    obj = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "checked"},
        "webhooks": [spec],
    }
    with pytest.raises(Invalid) as refused:
        await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, obj)
    assert "should be a domain with at least three segments separated by dots" in refused.value.message
    assert 'webhooks[0].sideEffects: Unsupported value: "Some"' in refused.value.message
