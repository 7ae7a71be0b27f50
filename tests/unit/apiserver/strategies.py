"""Finds the strategy of a built-in kind, as the API server would make it."""

from __future__ import annotations

from isvc.apiserver.builtin.base import Claims
from isvc.apiserver.builtin.catalog import KINDS, describe
from isvc.apiserver.resources.strategy import Strategy
from isvc.kube.resource import Resource


def strategy_of(resource: Resource) -> Strategy:
    kind = next(each for each in KINDS if each.resource == resource)
    return describe(kind, Claims()).strategy
