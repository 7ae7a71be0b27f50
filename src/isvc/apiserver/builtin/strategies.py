"""Built-in kinds that need more than their record says."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.apiserver.addresses import fixed_address_errors
from isvc.apiserver.builtin.base import BuiltIn
from isvc.apiserver.strategy import FieldError, Release
from isvc.kube.objects import Object, dig

_GRACE_SECONDS = 30


class Pods(BuiltIn):
    """Pods end gracefully once they are on a node, and are changed in parts by subresources."""

    graceful = True

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        if not dig(obj, "spec", "nodeName") or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
            return 0
        default: int = dig(obj, "spec", "terminationGracePeriodSeconds") or _GRACE_SECONDS
        return default if asked is None else max(asked, 0)

    def for_selection(self, obj: Object) -> Object:
        obj.setdefault("spec", {}).setdefault("hostNetwork", False)
        return obj

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        if subresource == "binding":  # which changes what is otherwise fixed
            return ()
        return super().validate_update(new, old, subresource)


class Services(BuiltIn):
    """Services get addresses and ports that no other Service has."""

    def allocate(self, new: Object, old: Object | None) -> Release:
        reserved = self.addresses.assign(new, old)
        return lambda: self.addresses.settle(reserved)

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        errors = super().validate_update(new, old, subresource)
        return errors if subresource else [*errors, *fixed_address_errors(new, old)]


class Namespaces(BuiltIn):
    """A namespace has finalizers of its own in its spec, and goes when its content has gone."""

    def restrict(self, new: Object, old: Object, subresource: str) -> None:
        before = old.get("spec") or {}
        if subresource == "finalize":
            new["spec"] = {**before, "finalizers": (new.get("spec") or {}).get("finalizers")}
            new["status"] = old.get("status") or {}
        elif not subresource:
            new.setdefault("spec", {})["finalizers"] = before.get("finalizers") or []

    def begin_deletion(self, obj: Object) -> bool:
        obj.setdefault("status", {})["phase"] = "Terminating"
        return True

    def is_held(self, obj: Object) -> bool:
        return bool(dig(obj, "spec", "finalizers"))


class Deployments(BuiltIn):
    def restrict(self, new: Object, old: Object, subresource: str) -> None:
        """A status update leaves the labels alone, unlike that of any other kind."""
        if subresource != "status":
            return
        labels = old["metadata"].get("labels")
        if labels is None:
            new["metadata"].pop("labels", None)
        else:
            new["metadata"]["labels"] = labels

    def is_new_generation(self, new: Object, old: Object) -> bool:
        """Annotations count, because they reach the ReplicaSets."""
        annotations = new["metadata"].get("annotations") != old["metadata"].get("annotations")
        return annotations or super().is_new_generation(new, old)


class Nodes(BuiltIn):
    def for_selection(self, obj: Object) -> Object:
        obj.setdefault("spec", {}).setdefault("unschedulable", False)
        return obj


class Events(BuiltIn):
    def for_selection(self, obj: Object) -> Object:
        source = obj.get("source") or {}
        obj["source"] = source.get("component") or obj.get("reportingComponent", "")
        return obj
