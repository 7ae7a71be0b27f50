"""Which strategy a built-in kind has. Each is imported when its kind is first asked for."""

from __future__ import annotations

from isvc.apiserver.builtin.base import BuiltIn
from isvc.apiserver.strategy import Strategy
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource


def strategy_of(resource: Resource) -> Strategy:
    if resource == CUSTOM_RESOURCE_DEFINITIONS:
        from isvc.apiserver.crd.definition import Definitions

        return Definitions(resource)
    return BuiltIn(resource)
