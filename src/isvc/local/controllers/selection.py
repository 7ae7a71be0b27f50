"""Finds pods by labels, and Services by a pod, without a look at all others of a namespace: there may be thousands.

A controller that asks declares the index, in its reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from isvc.kube.objects import Object, dig, labels_of, namespace_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import PODS, SERVICES, Resource
from isvc.kube.selectors import LabelSelector
from isvc.toolkit.cache import Reader
from isvc.toolkit.store import Indexer

_LABELS: Final = "labels"
_SELECTOR: Final = "selector"
_ORPHANS: Final = "orphans"
_FEW: Final = 8


def _by_labels(obj: Object) -> Iterable[str]:
    return (_pair(namespace_of(obj), *label) for label in labels_of(obj).items())


def _by_selector(service: Object) -> Iterable[str]:
    """Yields one pair of the selector, most likely the rarest: whatever it selects has that label."""
    if selector := dig(service, "spec", "selector"):
        yield _pair(namespace_of(service), *max(selector.items(), key=lambda label: len(label[1])))


def _by_lack_of_controller(obj: Object) -> Iterable[str]:
    if controller_of(obj) is None:
        yield namespace_of(obj)


LABELS: Final[Mapping[str, Indexer]] = {_LABELS: _by_labels}
SELECTOR: Final[Mapping[str, Indexer]] = {_SELECTOR: _by_selector}
ORPHANS: Final[Mapping[str, Indexer]] = {_ORPHANS: _by_lack_of_controller}


def _pair(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def pods_with_labels(reader: Reader, namespace: str, labels: Mapping[str, str]) -> list[Object]:
    """Returns the pods of a namespace that have all these labels."""
    if not labels:
        return reader.list(PODS, namespace)
    fewest = None
    for label in sorted(labels.items(), key=lambda label: -len(label[1])):  # long values are rare ones
        keys = reader.keys(PODS, _LABELS, _pair(namespace, *label))
        fewest = keys if fewest is None or len(keys) < len(fewest) else fewest
        if len(fewest) < _FEW:
            break
    found = (reader.get(PODS, key.name, key.namespace) for key in fewest or ())
    return [pod for pod in found if pod is not None and labels.items() <= labels_of(pod).items()]


def select_pods(reader: Reader, namespace: str, selector: Object) -> list[Object]:
    """Returns the pods of a namespace that a LabelSelector selects."""
    parsed = LabelSelector.from_spec(selector)
    found = pods_with_labels(reader, namespace, selector.get("matchLabels") or {})
    return [pod for pod in found if parsed.matches(labels_of(pod))]


def services_selecting(reader: Reader, pod: Object) -> Iterable[Object]:
    """Yields the Services that select the pod."""
    labels, namespace = labels_of(pod), namespace_of(pod)
    for label in labels.items():
        for service in reader.by_index(SERVICES, _SELECTOR, _pair(namespace, *label)):
            if dig(service, "spec", "selector").items() <= labels.items():
                yield service


def orphans(reader: Reader, resource: Resource, namespace: str) -> list[Object]:
    """Returns the objects of a namespace that nobody controls."""
    return reader.by_index(resource, _ORPHANS, namespace)
