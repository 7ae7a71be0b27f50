"""Checks what is in the way: another KServe that runs, leases that are held, webhooks that point nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from isvc.api.resources import GROUP
from isvc.insight.preflight.finding import Finding, error, ok, warning
from isvc.kube.objects import Key, Object, dig, labels_of, name_of, namespace_of
from isvc.kube.resource import SERVICE_NAME_LABEL
from isvc.kube.timestamps import parse_timestamp
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.serving.config import Config

#: Labels of the Deployments that KServe, or an earlier isvc, runs as.
_MANAGERS: Final = (
    "kserve-controller-manager",
    "llmisvc-controller-manager",
    "llminferenceservice-kserve-controller-manager",
    "kserve-localmodel-controller-manager",
    "kserve-localmodelnode-agent",
)
_LOCAL_MODEL_PROGRAMS: Final = {
    "kserve-localmodel-controller-manager": "pods of cached models wait for claims that nobody makes",
    "kserve-localmodelnode-agent": "no node downloads them",
}
_LEASES: Final = tuple(program.lease for program in PROGRAMS)


def check_managers(workloads: list[Object]) -> Iterator[Finding]:
    """Yields the Deployments and DaemonSets of managers and agents that run."""
    running = [each for each in workloads if _is_manager(each)]
    for deployment in running:
        images = ", ".join(
            str(each.get("image")) for each in dig(deployment, "spec", "template", "spec", "containers") or ()
        )
        place = f"{deployment['kind']} {namespace_of(deployment)}/{name_of(deployment)}"
        if dig(deployment, "spec", "replicas") == 0:
            yield ok("other managers", f"{place} ({images}) is scaled to 0")
        else:
            remedy = (
                "scale it to 0 before another manager starts: two would write the same children"
                if deployment["kind"] == "Deployment"
                else "delete it before another agent starts: two would download to the same folder"
            )
            yield warning("other managers", f"{place} runs {images}", remedy)
    if not running:
        yield ok("other managers", "no other KServe runs here")


def _is_manager(deployment: Object) -> bool:
    return name_of(deployment) in _MANAGERS or labels_of(deployment).get("control-plane") in _MANAGERS


def check_leases(leases: list[Object], now: datetime) -> Iterator[Finding]:
    for lease in leases:
        holder = dig(lease, "spec", "holderIdentity")
        if name_of(lease) in _LEASES and holder and _is_held(lease, now):
            place = f"Lease {namespace_of(lease)}/{name_of(lease)}"
            yield warning("leases", f"{place} is held by {holder}", "a manager waits until it is given up or expires")


def _is_held(lease: Object, now: datetime) -> bool:
    renewed = dig(lease, "spec", "renewTime")
    seconds = int(dig(lease, "spec", "leaseDurationSeconds") or 15)
    return bool(renewed) and now < parse_timestamp(str(renewed)) + timedelta(seconds=seconds)


def check_webhooks(configurations: list[Object], services: list[Object], slices: list[Object]) -> Iterator[Finding]:
    """Yields webhooks whose Service is not there, or has no pod that is ready."""
    known = {Key.of(service) for service in services}
    ready = {_service_of(each) for each in slices if any(_is_ready(end) for end in each.get("endpoints") or ())}
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            service = dig(webhook, "clientConfig", "service")
            if service is None:
                continue
            key = Key(str(service.get("namespace")), str(service.get("name")))
            why = "does not exist" if key not in known else "has no ready endpoint" if key not in ready else ""
            if why:
                yield _dead_webhook(configuration, webhook, f"Service {key} {why}")


def _dead_webhook(configuration: Object, webhook: Object, why: str) -> Finding:
    title = f"{configuration['kind']} {name_of(configuration)}"
    message = f"{title} asks {webhook.get('name')}, and {why}"
    if webhook.get("failurePolicy") == "Ignore":
        return warning("webhooks", message, f"delete the {configuration['kind']}, or start what serves it")
    return error(
        "webhooks",
        f"{message}: {_refused_writes(webhook)} are refused",
        f"delete the {configuration['kind']}, or start what serves it",
    )


def _refused_writes(webhook: Object) -> str:
    kinds = [kind for rule in webhook.get("rules") or () for kind in rule.get("resources") or ()]
    groups = {group for rule in webhook.get("rules") or () for group in rule.get("apiGroups") or ()}
    ours = f" of {GROUP}" if groups == {GROUP} else ""
    return f"writes of {', '.join(kinds) or 'its kinds'}{ours}"


def _service_of(endpoints: Object) -> Key:
    return Key(namespace_of(endpoints), labels_of(endpoints).get(SERVICE_NAME_LABEL, ""))


def _is_ready(endpoint: Object) -> bool:
    return dig(endpoint, "conditions", "ready") is not False and bool(endpoint.get("addresses"))


def check_local_models(config: Config, workloads: list[Object]) -> Iterator[Finding]:
    """Yields who is missing where services wait for caches of models: who makes their claims, and who downloads."""
    if not config.local_model.enabled:
        return
    running = (each for each in workloads if dig(each, "spec", "replicas") != 0)
    there = {labels_of(each).get("control-plane", name_of(each)) for each in running}
    for plane, title in _LOCAL_MODEL_PROGRAMS.items():
        if plane not in there:
            yield error(
                "local models",
                f"localModel.enabled is true, and nothing runs as {plane}: {title}",
                "install the chart with localmodel.enabled=true, or set localModel.enabled to false",
            )
