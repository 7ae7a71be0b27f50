"""Node selectors: the terms by which a volume, or an affinity, says which nodes it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, labels_of, name_of
from isvc.kube.selectors import Requirement, SelectorError

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": ">", "Lt": "<"}


def selects(selector: Object, node: Object) -> bool:
    """Returns whether one of the selector's terms is true of the node; an empty term is true of none."""
    return any(_is_true_of(term, node) for term in selector.get("nodeSelectorTerms") or ())


def is_node_ready(node: Object) -> bool:
    return is_condition_true(node, "Ready")


def _is_true_of(term: Object, node: Object) -> bool:
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(labels or fields) and (
        all(_matches(each, labels_of(node)) for each in labels)
        and all(_matches(each, {"metadata.name": name_of(node)}) for each in fields)
    )


def _matches(expression: Object, values: Mapping[str, str]) -> bool:
    """A requirement that is none is true of nothing, as for the scheduler."""
    try:
        operator = _OPERATORS[str(expression.get("operator"))]
        return Requirement(str(expression.get("key")), operator, tuple(expression.get("values") or ())).matches(values)
    except (KeyError, IndexError, SelectorError):
        return False
