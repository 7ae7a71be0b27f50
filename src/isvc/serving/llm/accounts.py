"""Secrets that a ServiceAccount of ours takes over from another one."""

from __future__ import annotations

from isvc.kube.objects import Object

_LISTS = ("secrets", "imagePullSecrets")


def inherited_secrets(source: Object, live: Object | None) -> Object:
    """The source's secrets after those that our account has already.

    Some clusters add pull secrets to every account; an update that took them away would be undone, for ever.
    """
    return {key: merged for key in _LISTS if (merged := _merged((live or {}).get(key) or [], source.get(key) or []))}


def _merged(present: list[Object], more: list[Object]) -> list[Object]:
    return [*present, *(each for each in more if each not in present)]
