"""Parses the paths under /api and /apis."""

from __future__ import annotations

import re
from typing import NamedTuple

_PROXIED = re.compile(r"(/api/v1/(?:namespaces/[^/]+/(?:pods|services)|nodes)/[^/]+/proxy)(/.*)?")


class Target(NamedTuple):
    """What a path under /api or /apis points at; empty parts are not there."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watched: bool = False  # by the old form of the path, /api/v1/watch/...
    rest: str = ""  # after /proxy: the path that another server is asked for


def parse(path: str) -> Target | None:
    if "/proxy" in path and (proxied := _PROXIED.fullmatch(path)):
        target = _parse(proxied[1])
        return target._replace(rest=proxied[2] or "") if target else None
    return _parse(path)


def _parse(path: str) -> Target | None:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not rest:
        return Target(group, version)
    if "" in rest:
        return None
    watched = rest[0] == "watch" and len(rest) > 1
    if watched:
        rest = rest[1:]
    namespace = ""
    own = group == "" and rest[0] == "namespaces" and (len(rest) <= 2 or rest[2] in ("status", "finalize"))
    if rest[0] == "namespaces" and len(rest) > 2 and not own:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource, watched)
