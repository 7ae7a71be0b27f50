"""Refusals of what a list or a watch asks for, all of them at once and in kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.apiserver import refusals
from isvc.apiserver.field_errors import forbidden, not_supported
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import GVK

_MATCH = "resourceVersionMatch"
_INITIAL = "sendInitialEvents"


def check_list(query: Mapping[str, str]) -> None:
    match, version = query.get(_MATCH, ""), query.get("resourceVersion", "")
    problems = []
    if match and not version:
        problems.append(forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        problems.append(forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        problems.append(not_supported(_MATCH, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        problems.append(forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if query.get(_INITIAL):
        problems.append(forbidden(_INITIAL, f"{_INITIAL} is forbidden for list"))
    _refuse(problems)


def check_watch(query: Mapping[str, str]) -> None:
    match = query.get(_MATCH, "")
    problems = []
    if query.get(_INITIAL) and match != "NotOlderThan":
        problems.append(forbidden(_MATCH, f"{_INITIAL} requires setting {_MATCH} to NotOlderThan"))
    if match and not query.get(_INITIAL):
        problems.append(forbidden(_MATCH, f"{_MATCH} is forbidden for watch unless {_INITIAL} is provided"))
    if match not in ("", "NotOlderThan"):
        problems.append(not_supported(_MATCH, match, ("NotOlderThan",)))
    if match and query.get("continue"):
        problems.append(forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    _refuse(problems)


def _refuse(problems: list[FieldError]) -> None:
    if problems:
        raise refusals.invalid(GVK("meta.k8s.io", "v1", "ListOptions"), "", problems)
