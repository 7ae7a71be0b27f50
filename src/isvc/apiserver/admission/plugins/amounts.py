"""Amounts of resources by name, and what a whole pod asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]


def amounts(listed: Mapping[str, str | int] | None) -> Amounts:
    return {name: Quantity.parse(value) for name, value in (listed or {}).items()}


def total(one: Amounts, other: Amounts) -> Amounts:
    both = {name: one[name] + other[name] for name in one.keys() & other.keys()}
    return {**one, **other, **both}


def pod_amounts(spec: Object, field: str) -> Amounts:
    """Returns the `requests` or `limits` of a pod: of all containers, or of the init container that needs more than
    they do.

    Init containers that go on running (sidecars) count for the containers and for the init containers after them. What
    the pod says of itself as a whole goes before.
    """
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = total(running, amounts(dig(container, "resources", field)))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = amounts(dig(container, "resources", field))
        if container.get("restartPolicy") == "Always":
            running, sidecars = total(running, own), total(sidecars, own)
            own = {}
        starting = _largest(starting, total(own, sidecars))
    whole = amounts(dig(spec, "resources", field))
    return {**_largest(running, starting), **{name: whole[name] for name in ("cpu", "memory") if name in whole}}


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{name: value for name, value in other.items() if name not in one or value > one[name]}}
