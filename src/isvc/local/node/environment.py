"""The environment of a container: what this machine gives, what the pod's spec says, `$(NAME)` expanded.

Of the user's own environment only what programs need to run at all is passed on, so that credentials in a shell do not
reach a model server by accident.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from isvc.kube.objects import Object, containers_of, dig
from isvc.kube.quantity import Quantity
from isvc.local.node.capacity import capacity

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
              "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "https_proxy", "HTTPS_PROXY",
              "no_proxy", "NO_PROXY", "CUDA_VISIBLE_DEVICES", "SYSTEMROOT")  # fmt: skip
MOST_EXPANDED: Final = 6 << 20  # characters of a container; Linux gives no process more
_REFERENCE = re.compile(r"\$(\$|\(([^()\s]+)\))")


class Missing(Exception):
    """A ConfigMap, Secret, key or field that the pod needs is not there: CreateContainerConfigError."""


@dataclass(frozen=True, slots=True)
class Sources:
    """ConfigMaps and Secrets of the pod's namespace by name, values as text; None for one that does not exist."""

    config_maps: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)

    def of(self, kind: str) -> Mapping[str, Mapping[str, str] | None]:
        return self.config_maps if kind == "configMap" else self.secrets


def inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in _PASSED_ON if name in environ}


def container_env(pod: Object, container: Object, sources: Sources) -> dict[str, str]:
    """Returns the variables of `envFrom` and `env`, in Kubernetes' order and with its expansion.

    Raises OSError for more than any process is given: thirty variables that have the one before them twice are a
    gigabyte.
    """
    env: dict[str, str] = {}
    room = MOST_EXPANDED
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix") or ""
        for kind in ("configMap", "secret"):
            reference = source.get(f"{kind}Ref")
            if reference is not None:
                values = _values(sources, kind, reference)
                env.update({prefix + key: value for key, value in (values or {}).items()})
    for item in container.get("env") or []:
        value = _value(pod, container, item, sources, env, room)
        if value is not None:
            env[item["name"]] = value
            room -= 0 if item.get("valueFrom") else len(value)
    return env


def expand_words(words: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Returns what a command line becomes; raises OSError as `container_env` does."""
    expanded, room = list[str](), MOST_EXPANDED
    for word in words:
        expanded.append(expand(word, env, room))
        room -= len(expanded[-1])
    return expanded


def expand(text: str, env: Mapping[str, str], room: int = MOST_EXPANDED) -> str:
    """Replaces `$(NAME)` by its value; an unknown name stays as it is, and `$$` is a dollar sign.

    Raises OSError where values take more than `room`.
    """

    def replace(found: re.Match[str]) -> str:
        nonlocal room
        value = "$" if found[1] == "$" else env.get(found[2], found[0])
        room -= len(value)
        if room < 0:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        return value

    return _REFERENCE.sub(replace, text)


def _value(
    pod: Object, container: Object, item: Object, sources: Sources, env: Mapping[str, str], room: int
) -> str | None:
    source = item.get("valueFrom")
    if not source:
        return expand(str(item.get("value") or ""), env, room)
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"].get("fieldPath", ""))
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"])
    for kind in ("configMap", "secret"):
        reference = source.get(f"{kind}KeyRef")
        if reference is not None:
            values = _values(sources, kind, reference)
            if values is None:
                return None
            if reference["key"] not in values and not reference.get("optional"):
                raise Missing(f"couldn't find key {reference['key']} in {_KINDS[kind]} {reference.get('name')}")
            return values.get(reference["key"])
    return None


_KINDS = {"configMap": "ConfigMap", "secret": "Secret"}


def _values(sources: Sources, kind: str, reference: Object) -> Mapping[str, str] | None:
    values = sources.of(kind).get(reference.get("name", ""))
    if values is None and not reference.get("optional"):
        raise Missing(f'{_KINDS[kind].lower()} "{reference.get("name")}" not found')
    return values


def field_value(pod: Object, path: str) -> str:
    """Returns the downward API's fields."""
    found = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if found:
        return str((dig(pod, "metadata", found[1]) or {}).get(found[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        values: dict[str, str] = dig(pod, *path.split(".")) or {}
        return "\n".join(f'{key}="{_escape(value)}"' for key, value in sorted(values.items()))
    value = dig(pod, *path.split("."))
    if value is None and path == "spec.serviceAccountName":
        return "default"
    if value is None and path == "status.podIPs":
        return str(dig(pod, "status", "podIP") or "")
    return "" if value is None else str(value)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(pod: Object, container: Object, reference: Object) -> str:
    name = reference.get("containerName")
    if name:
        container = next((c for c in dig(pod, "spec", "containers") or [] if c["name"] == name), container)
    kind, _, resource = reference.get("resource", "").partition(".")
    given = dig(container, "resources", kind, resource)
    if given is None:  # no limit is all there is; a request follows the limit that was given
        given = capacity().get(resource) if kind == "limits" else dig(container, "resources", "limits", resource)
    if given is None:
        return "0"
    divisor = Quantity.parse(reference.get("divisor") or "1")
    amount, unit = float(Quantity.parse(given)), float(divisor) or 1.0
    return str(-int(-amount // unit))


def references(pod: Object) -> tuple[set[str], set[str]]:
    """Returns the names of the ConfigMaps and Secrets that the variables of a pod's containers come from."""
    config_maps: set[str] = set()
    secrets: set[str] = set()
    for container in containers_of(pod.get("spec") or {}):
        sources = [*(container.get("envFrom") or []), *(e.get("valueFrom") or {} for e in container.get("env") or [])]
        for source in sources:
            for key, found in (("configMap", config_maps), ("secret", secrets)):
                reference = source.get(f"{key}Ref") or source.get(f"{key}KeyRef")
                if reference and reference.get("name"):
                    found.add(reference["name"])
    return config_maps, secrets
