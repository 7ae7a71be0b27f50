"""Defaults of pods, pod templates and nodes."""

from __future__ import annotations

import re

from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_DIGEST_OR_TAG = re.compile(r"(@[a-z0-9]+:[0-9a-fA-F]+|:[\w][\w.-]{0,127})$")
_MODE = 0o644
_MILLI = 10**6  # nanos


def pod(obj: Object) -> None:
    _addresses(obj["status"])
    pod_spec(obj["spec"])
    spec = obj["spec"]
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            resources = container["resources"]
            if resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for key in ("containers", "initContainers"):
            for container in spec.get(key) or ():
                for port in container.get("ports") or ():
                    port.setdefault("hostPort", port["containerPort"])


def _addresses(status: Object) -> None:
    """Keeps the one address and the list of them in step."""
    address, addresses = status.get("podIP"), status.get("podIPs") or []
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}, *addresses[1:]]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip")


def node(obj: Object) -> None:
    """Gives pods all that a node has, unless it says otherwise; the one range of addresses begins the list of them."""
    spec, status = obj["spec"], obj["status"]
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(status["capacity"])


def template(obj: Object) -> None:
    pod_spec(obj["spec"])


def pod_spec(spec: Object) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # the old name of the field is kept in step
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for key in _CONTAINERS:
        for container in spec.get(key) or ():
            _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    round_up(spec.get("overhead"))


def _container(container: Object) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        _field_reference(variable.get("valueFrom"))
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if key in container:
            _probe(container[key])
    for action in (container.get("lifecycle") or {}).values():
        if isinstance(action, dict):
            _http_get(action)
    resources = container.get("resources") or {}
    round_up(resources.get("limits"))
    round_up(resources.get("requests"))


def _pull_policy(image: str) -> str:
    """Returns an image that may change under its name is pulled again."""
    if not image:
        return "IfNotPresent"
    found = _DIGEST_OR_TAG.search(image.rpartition("/")[2])
    return "Always" if found is None or found[0] == ":latest" else "IfNotPresent"


def _probe(probe: Object) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _http_get(probe)
    if "grpc" in probe:
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _http_get(action: Object) -> None:
    if "httpGet" in action:
        action["httpGet"].setdefault("path", "/")
        action["httpGet"].setdefault("scheme", "HTTP")


def _field_reference(source: Object | None) -> None:
    if source and "fieldRef" in source:
        source["fieldRef"].setdefault("apiVersion", "v1")


def _volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if kind in volume:
            volume[kind].setdefault("defaultMode", _MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", _pull_policy(volume["image"].get("reference") or ""))
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _field_reference(item)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _field_reference(item)
    if "ephemeral" in volume and "volumeClaimTemplate" in volume["ephemeral"]:
        volume["ephemeral"]["volumeClaimTemplate"]["spec"].setdefault("volumeMode", "Filesystem")


def round_up(resources: Object | None) -> None:
    """Amounts finer than a thousandth are rounded up."""
    for name, amount in (resources or {}).items():
        if amount[-1] in "nu" or "." in amount:
            quantity = Quantity.parse(amount)
            if resources and quantity.nanos % _MILLI:
                resources[name] = str(Quantity(-(-quantity.nanos // _MILLI) * _MILLI, quantity.notation))
