"""A live child held against its manifest, by the rules of its write policy.

Labels and annotations are shared ground. Ours have to be there, those of others stay, and one that we set before and no
longer want goes: managedFields say that we set it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from isvc.engine.custom_defaults import known_defaults
from isvc.engine.drift import drifted
from isvc.engine.paths import at, put, steps, without
from isvc.engine.plan import Child
from isvc.kube.builtin import complete
from isvc.kube.equality import covers
from isvc.kube.objects import Object, deep_copy, dig
from isvc.kube.owners import controller_ref, owner_refs

_SHARED: Final = ("labels", "annotations")
_FROM_LIVE: Final = ("uid", "resourceVersion", "finalizers", "creationTimestamp", "deletionTimestamp")
#: Values that the API server allots, whatever they are.
ALLOTTED: Final = {
    ("", "Service"): tuple(
        f"spec.{name}" for name in ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy")
    ),
}


@dataclass(frozen=True)
class Comparison:
    """`manager` is the name under which we own fields."""

    child: Child
    live: Object
    manager: str

    @property
    def has_all_required(self) -> bool:
        """Whether the maps that the policy requires hold all that the manifest says."""
        manifest, required = self.child.manifest, self.child.policy.required
        return all(covers(at(self.live, path) or {}, at(manifest, path) or {}) for path in required)

    @property
    def has_all_compared(self) -> bool:
        """Whether the compared fields hold all that the manifest says, and maybe more."""
        return covers(_compared_parts(self.child, self.live), _compared_parts(self.child, self.child.manifest))

    @property
    def drifted(self) -> bool:
        """Whether compared fields lack something, or have what neither the manifest nor the API server put there."""
        child, live = self.child, self.live
        if self.leftovers:
            return True
        stored = complete(child.manifest)
        desired = stored if stored is not None else child.manifest
        for path in ALLOTTED.get((child.resource.group, child.resource.kind), ()):
            if at(desired, path) is None:
                live = without(live, steps(path))
        have, want = _compared_parts(child, live), _compared_parts(child, desired)
        if have == want:
            return False
        known, exact = known_defaults(child.resource), stored is not None
        return any(
            drifted(have[path], want[path], known.under(steps(path)), exact=exact, field=steps(path)[-1])
            for path in want
        )

    @cached_property
    def leftovers(self) -> set[tuple[str, str]]:
        """Labels and annotations that we set once and no longer want, where that makes an update due."""
        return {
            (name, key)
            for name in _SHARED
            if self.child.policy.withdraws(f"metadata.{name}")
            for key in self._set_by_us(name, but=self.child.manifest["metadata"].get(name) or {})
        }

    @cached_property
    def fingerprint(self) -> int:
        """Changes when something in the live object changes that matters here."""
        return digest([_compared_parts(self.child, self.live), sorted(self.leftovers)])

    def replacement(self, owner: Object) -> Object:
        """Returns the manifest as an update: with the live object's identity, and with what others own as it is."""
        body = deep_copy(self.child.manifest)
        metadata, before = body["metadata"], self.live["metadata"]
        metadata |= {key: before[key] for key in _FROM_LIVE if before.get(key)}
        for name in _SHARED:
            if shared := {**self._of_others(name), **(metadata.get(name) or {})}:
                metadata[name] = shared
        if references := owners(owner, self.child, self.live):
            metadata["ownerReferences"] = references
        for path in self.child.policy.ignore:
            if (value := at(self.live, path)) is not None:
                put(body, path, value)
        return body

    def _of_others(self, name: str) -> Object:
        """Returns labels or annotations of others that stay: all that the policy retains, else Kubernetes'."""
        present: Object = self.live["metadata"].get(name) or {}
        ours, retained = self._set_by_us(name), self.child.policy.retains(f"metadata.{name}")
        return {
            key: value
            for key, value in present.items()
            if key not in ours and (retained or key.partition("/")[0].endswith("kubernetes.io"))
        }

    def _set_by_us(self, name: str, but: Collection[str] = ()) -> set[str]:
        """Returns the keys of labels or annotations that our field manager set, of those that are there."""
        metadata = self.live["metadata"]
        present = {key for key in metadata.get(name) or () if key not in but}
        claimed: set[str] = set()
        for entry in (metadata.get("managedFields") or ()) if present else ():
            if entry.get("manager") == self.manager:
                claimed |= (dig(entry, "fieldsV1", "f:metadata", f"f:{name}") or {}).keys()
        return {key for key in present if f"f:{key}" in claimed}


class Wanted(NamedTuple):
    """What a manifest asks for: in the fields that are compared, and in the maps that may hold more."""

    compared: int
    required: int


def fingerprint_of(child: Child) -> Wanted:
    """Changes when the manifest asks for something else."""
    required = [at(child.manifest, path) for path in child.policy.required]
    return Wanted(digest(_compared_parts(child, child.manifest)), digest(required))


def owners(owner: Object, child: Child, live: Object) -> list[Object]:
    others = [ref for ref in owner_refs(live) if not (child.owned and ref.get("controller"))]
    return [controller_ref(owner), *others] if child.owned else others


def _compared_parts(child: Child, obj: Object) -> dict[str, Any]:
    """Returns the parts of an object that decide whether an update is due, by path, without ignored fields."""
    paths = child.policy.compare
    if paths is None:
        paths = tuple(key for key in child.manifest if key not in ("apiVersion", "kind", "metadata", "status"))
    for path in child.policy.ignore:
        obj = without(obj, steps(path))
    return {path: at(obj, path) for path in paths}


def digest(value: Any) -> int:
    return hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
