"""Secrets that a ServiceAccount of ours takes over from another one."""

from __future__ import annotations

from isvc.kube.objects import Object

_LISTS = ("secrets", "imagePullSecrets")


def inherited_secrets(source: Object, live: Object | None) -> Object:
    """Returns the source's secrets; where our account has them already, with those that follow.

    Some clusters add pull secrets to every account; an update that took them away would be undone, for ever.
    """
    return {key: merged for key in _LISTS if (merged := _merge((live or {}).get(key) or [], source.get(key) or []))}


def _merge(present: list[Object], wanted: list[Object]) -> list[Object]:
    return present if present[: len(wanted)] == wanted else wanted
