"""Base paths under which a route answers: one for each way in, the shallowest of its kind.

The ways in are the service's own path, the model's path that services may share, and requests that name the model in a
header. Rules that lead to a Service know the whole path; those that lead to a pool only some below it.
"""

from __future__ import annotations

from collections.abc import Iterable

from isvc.kube.objects import Object, dig

_SHARED = "/publishers/"


def base_paths(route: Object, model_header: str) -> list[str]:
    own, shared, by_header = _Found(), _Found(), _Found()
    for rule in dig(route, "spec", "rules") or ():
        whole = any(backend.get("kind", "Service") == "Service" for backend in rule.get("backendRefs") or ())
        for match in rule.get("matches") or ():
            path = dig(match, "path", "value") or "/"
            if not match.get("headers"):
                (shared if path.startswith(_SHARED) else own).add(path, whole)
            elif is_model_match(match, model_header):  # other headers are the user's business
                by_header.add(path, whole)
    found = [path for each in (own, shared, by_header) if (path := each.shallowest())]
    return list(dict.fromkeys(sorted(found, key=_depth))) or ["/"]


def is_model_match(match: Object, model_header: str) -> bool:
    """Returns whether a match asks for the header that names the model."""
    return bool(model_header) and any(header.get("name") == model_header for header in match.get("headers") or ())


class _Found:
    def __init__(self) -> None:
        self.whole: list[str] = []
        self.below: list[str] = []

    def add(self, path: str, whole: bool) -> None:
        (self.whole if whole else self.below).append(path)

    def shallowest(self) -> str:
        paths: Iterable[str] = self.whole or self.below
        return min(paths, key=_depth, default="")


def _depth(path: str) -> tuple[int, int]:
    return path.count("/"), len(path)
