"""Whether a live object is still what its manifest made of it.

The API server fills in defaults, so a live object always has more than its manifest. What it has more counts as drift
unless it is such a default: that is how a field is noticed that was taken out of the manifest, or put in by hand. A
default that is missing from this table costs one update that changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

from isvc.kube.equality import ZERO_MATTERS, same_scalar

# Values that somebody else allots, whatever they are.
_ALLOTTED: Final = frozenset(
    {"clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy", "serviceAccount"}
)
# Maps whose keys are data: nothing is ever filled in.
_FREE: Final = frozenset(
    {"annotations", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests", "selector"}
)
_PERCENT_UP: Final = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_CPU_80: Final = {"type": "Utilization", "averageUtilization": 80}
_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "allocationStrategy": ("consistent-hashing",),
    "apiVersion": ("v1",),
    "configVersions": (3,),
    "defaultMode": (420,),
    "dnsPolicy": ("ClusterFirst",),
    "failureThreshold": (3,),
    "filterStrategy": ("relabel-config",),
    "group": ("", "gateway.networking.k8s.io"),
    "imagePullPolicy": ("IfNotPresent", "Always"),
    "internalTrafficPolicy": ("Cluster",),
    "kind": ("Service", "Gateway"),
    "managementState": ("managed",),
    "maxSurge": ("25%",),
    "maxUnavailable": ("25%",),
    "metrics": (
        [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    ),
    "minReplicas": (1,),
    "pathType": ("ImplementationSpecific",),
    "periodSeconds": (10, 15),
    "policies": (_PERCENT_UP, _PERCENT_UP[1:]),
    "procMount": ("Default",),
    "progressDeadlineSeconds": (600,),
    "protocol": ("TCP",),
    "replicas": (1,),
    "restartPolicy": ("Always",),
    "revisionHistoryLimit": (10,),
    "schedulerName": ("default-scheduler",),
    "scheme": ("HTTP",),
    "scrapeInterval": ("30s",),
    "selectPolicy": ("Max",),
    "sessionAffinity": ("None",),
    "successThreshold": (1,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "timeoutSeconds": (1,),
    "type": ("ClusterIP", "RollingUpdate", "Exact", "PathPrefix"),
    "upgradeStrategy": ("automatic",),
    "weight": (1,),
}


def drifted(live: Any, desired: Any, field: str = "", parent: str = "") -> bool:
    """Whether the live value is something else than what the API server makes of the desired one."""
    if isinstance(desired, dict):
        if live is None:
            return any(drifted(None, value, key, field) for key, value in desired.items())
        if not isinstance(live, dict):
            return True
        return any(drifted(live.get(key), value, key, field) for key, value in desired.items()) or any(
            key not in desired and not _filled_in(key, value, field) for key, value in live.items()
        )
    if isinstance(desired, list):
        have = live or []
        if not isinstance(have, list) or len(have) != len(desired):
            return True
        return any(drifted(one, other, field, parent) for one, other in zip(have, desired, strict=True))
    if live is None:
        return bool(desired) or (desired is not None and (parent in _FREE or field in ZERO_MATTERS))
    if desired is None:
        return not _filled_in(field, live, parent)
    return not same_scalar(live, desired, field, parent)


def _filled_in(field: str, value: Any, parent: str) -> bool:
    """Whether the API server could have set this by itself."""
    if parent in _FREE:
        return False
    if not value:
        return field not in ZERO_MATTERS
    if field in _ALLOTTED:
        return True
    if field in _DEFAULTS:
        return value in _DEFAULTS[field]
    return isinstance(value, dict) and all(_filled_in(key, inner, field) for key, inner in value.items())
