"""What a pod asks for that this machine does not have. It runs all the same, as well as it can, with a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity, QuantityError

_UNLIMITED = ("ephemeral-storage", "hugepages-")  # what no pod is held to here


def missing_here(pod: Object, labels: Mapping[str, str], capacity: Mapping[str, str]) -> Iterator[str]:
    """Yields one clause for each thing that a node with these labels and this capacity lacks."""
    for name, value in (dig(pod, "spec", "nodeSelector") or {}).items():
        if labels.get(name) != value:
            yield f"this machine is no node with the label {name}={value}"
    wanted: dict[str, Quantity] = {}
    for container in dig(pod, "spec", "containers") or ():
        for name, amount in _requests(container).items():
            wanted[name] = wanted.get(name, Quantity.parse(0)) + amount
    for name, amount in sorted(wanted.items()):
        if name not in capacity and amount:
            yield f"this machine has no {name}"
        elif name in capacity and Quantity.parse(capacity[name]) < amount:
            yield f"this machine has {name} {capacity[name]}, and the pod asks for {amount}"


def _requests(container: Object) -> dict[str, Quantity]:
    """Returns what a container asks for; a limit without a request is one, too."""
    resources = container.get("resources") or {}
    found = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: _quantity(value) for name, value in found.items() if not name.startswith(_UNLIMITED)}


def _quantity(value: object) -> Quantity:
    try:
        return Quantity.parse(str(value))
    except QuantityError:
        return Quantity.parse(0)
