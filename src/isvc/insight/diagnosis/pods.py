"""Which pods belong to a service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.api.kinds import NAMED, row_of
from isvc.controllers.inferenceservice.status.model import newest_first
from isvc.kube.objects import Object, labels_of, name_of

#: Labels whose value is the name of the service that a pod belongs to.
_SERVICE_LABELS: Final = frozenset(row.pod_label for row in NAMED if row.pod_label)


def pods_of(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Returns the pods of a service, the newest first."""
    row = row_of(service)
    label = row.pod_label if row else ""
    return newest_first([pod for pod in pods if labels_of(pod).get(label) == name_of(service)])


def named_services(pod: Object) -> set[str]:
    """Returns the names that a pod's labels say it belongs to."""
    return {labels[label] for label in _SERVICE_LABELS if label in (labels := labels_of(pod))}
