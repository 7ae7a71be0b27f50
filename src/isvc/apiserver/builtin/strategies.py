"""Built-in kinds that need more than their record says."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.apiserver import refusals
from isvc.apiserver.addresses import Unassignable, fixed_address_errors
from isvc.apiserver.builtin import conversion
from isvc.apiserver.builtin.base import BuiltIn
from isvc.apiserver.builtin.validation import pods as pod_rules
from isvc.apiserver.field_errors import forbidden
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import User
from isvc.apiserver.resources.strategy import FieldError, Release
from isvc.kube.objects import Object, dig, labels_of
from isvc.kube.pods import is_terminal

_GRACE_SECONDS = 30


class Pods(BuiltIn):
    """Pods end gracefully once they are on a node, and are changed in parts by subresources."""

    graceful = True

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        if not dig(obj, "spec", "nodeName") or is_terminal(obj):
            return 0
        seconds: int | None = dig(obj, "spec", "terminationGracePeriodSeconds") if asked is None else asked
        return _GRACE_SECONDS if seconds is None else seconds

    def for_selection(self, obj: Object) -> Object:
        obj.setdefault("spec", {}).setdefault("hostNetwork", False)
        return obj

    def restrict(self, new: Object, old: Object, subresource: str) -> None:
        if subresource not in ("ephemeralcontainers", "resize"):
            return
        spec = dict(old["spec"])
        if subresource == "resize":
            for key in ("containers", "initContainers"):
                wanted = {each.get("name"): each for each in new["spec"].get(key) or ()}
                if spec.get(key):
                    spec[key] = [_resize(each, wanted.get(each["name"], each)) for each in spec[key]]
        else:
            spec["ephemeralContainers"] = new["spec"].get("ephemeralContainers") or []
        new["spec"], new["status"] = spec, old.get("status") or {}

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        added = dig(obj, "spec", "ephemeralContainers")
        early = [forbidden("spec.ephemeralContainers", "cannot be set on create")] if added else []
        return [*self.validate(obj), *early]

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        match subresource:
            case "binding":  # which changes what is otherwise fixed
                return ()
            case "resize":
                return [*self.validate(new), *pod_rules.pod_resize(new, old)]
            case "ephemeralcontainers":
                return [*self.validate(new), *pod_rules.ephemeral_containers_update(new, old)]
        return super().validate_update(new, old, subresource)


def _resize(container: Object, wanted: Object) -> Object:
    changed: Object = {key: wanted[key] for key in ("resources", "resizePolicy") if key in wanted}
    return {**container, **changed}


class Services(BuiltIn):
    """Services get addresses and ports that no other Service has."""

    def allocate(self, new: Object, old: Object | None, dry_run: bool) -> Release:
        try:
            reserved = self.claims.addresses.assign(new, old, dry_run)
        except Unassignable as refused:
            raise refusals.invalid(self.resource.gvk, new["metadata"].get("name", ""), [refused.error]) from None
        return lambda: self.claims.addresses.settle(reserved)

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
        """Makes a status update leave the labels alone, unlike that of any other kind."""
        if subresource != "status":
            return
        labels = old["metadata"].get("labels")
        if labels is None:
            new["metadata"].pop("labels", None)
        else:
            new["metadata"]["labels"] = labels

    def is_new_generation(self, new: Object, old: Object) -> bool:
        """Counts annotations, because they reach the ReplicaSets."""
        annotations = new["metadata"].get("annotations") != old["metadata"].get("annotations")
        return annotations or super().is_new_generation(new, old)


class EndpointSlices(BuiltIn):
    def is_new_generation(self, new: Object, old: Object) -> bool:
        """Counts labels, because they say which Service a slice belongs to."""
        labels = labels_of(new) != labels_of(old)
        return labels or super().is_new_generation(new, old)


class Nodes(BuiltIn):
    def for_selection(self, obj: Object) -> Object:
        obj.setdefault("spec", {}).setdefault("unschedulable", False)
        return obj


class Events(BuiltIn):
    def for_selection(self, obj: Object) -> Object:
        """Adds the names that either version has for a field; events are stored in one of them."""
        source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent", "")
        return {**conversion.event(obj, "events.k8s.io/v1"), **obj, "source": source}


class CertificateRequests(BuiltIn):
    """Who asks is the server's to say; who approves does that, and who signs the rest of the status."""

    def prepare_for_create(self, obj: Object, user: User) -> None:
        super().prepare_for_create(obj, user)
        spec = {key: value for key, value in obj["spec"].items() if key not in _REQUESTER}
        obj["spec"] = {**spec, **user.info()}
        obj["status"] = {}

    def restrict(self, new: Object, old: Object, subresource: str) -> None:
        new["spec"] = old["spec"]
        status, before = dict(new.get("status") or {}), old.get("status") or {}
        if subresource == "approval":
            status.pop("certificate", None)
            if before.get("certificate"):
                status["certificate"] = before["certificate"]
        if subresource:
            status["conditions"] = [_stamp(each, before) for each in status.get("conditions") or ()]
            new["status"] = {key: value for key, value in status.items() if value}


_REQUESTER = ("username", "uid", "groups", "extra")


def _stamp(condition: Object, before: Object) -> Object:
    """Returns the condition with its times: of now, or of when it last became what it is."""
    earlier: Object = next(
        (each for each in before.get("conditions") or () if each.get("type") == condition.get("type")), {}
    )
    same = earlier.get("status") == condition.get("status")
    changed = earlier.get("lastTransitionTime") if same else None
    return {
        **condition,
        "lastUpdateTime": condition.get("lastUpdateTime") or now(),
        "lastTransitionTime": condition.get("lastTransitionTime") or changed or now(),
    }
