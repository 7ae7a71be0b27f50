"""What one version of one kind does to objects on their way in: the seam between the generic pipeline and the kinds.

The pipeline (`verbs/`) is the same for every kind: decode, default, admit, prepare, validate, store. A `Strategy`
answers the questions in which kinds differ. This base class answers all of them in the plainest way, so a kind
overrides only what is special about it. Methods that take `obj` may change it in place and return it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from isvc.kube.objects import Object

if TYPE_CHECKING:
    from isvc.apiserver.request import User

Release: TypeAlias = Callable[[], None]


def _nothing() -> None:
    pass


class FieldError(NamedTuple):
    """One complaint about one field, as it appears in `status.details.causes`."""

    reason: str  # FieldValueInvalid, FieldValueRequired, FieldValueNotSupported, FieldValueForbidden, ...
    field: str  # spec.containers[0].name
    message: str  # Invalid value: "x": must be ...

    def cause(self) -> Object:
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class Strategy:
    """A kind without peculiarities: no defaults, nothing refused, `generation` counts changes to what is desired."""

    #: OpenAPI v3 structural schema of the whole object (kube.schemas format), or None when the kind is schemaless.
    schema: Object | None = None
    #: Whether `metadata.generation` is kept.
    generation: bool = True
    #: Whether a new object may come with a status, although later writes of the main resource leave it alone.
    created_with_status: bool = False
    #: Whether a PUT to a missing name creates the object.
    create_on_update: bool = False
    #: Whether an update without resourceVersion is accepted.
    unconditional_update: bool = True
    #: What becomes of dependents when a deletion does not say: Orphan, or the garbage collector's business.
    default_propagation: str = ""
    #: Whether objects end gracefully, marked before they go (pods).
    graceful: bool = False
    #: Fields whose changes do not count as a new generation.
    uncounted: tuple[str, ...] = ("apiVersion", "kind", "metadata", "status")

    @property
    def blank(self) -> Object | None:
        """Returns an object of this kind about which nothing was said; a creator manages only what differs from it."""
        return None

    def decode(self, obj: Object, unknown: list[str]) -> Object:
        """Returns a request body of this version, pruned and defaulted; also called on what mutating webhooks return.

        Appends one path per unknown field (`spec.foo`) to `unknown`; raises BadRequest when a value has the wrong type.
        """
        return obj

    def read(self, obj: Object) -> Object:
        """Returns a stored object as this version shows it now, with defaults that came after it was written.

        Only called when `epoch` differs from the one that the object was written under.
        """
        return obj

    def prepare_for_create(self, obj: Object, user: User) -> None:
        """Sets fields that clients may not set on what `user` creates: the last touch before validation."""

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        """Does so for an update; the pipeline has taken care of `status`, `metadata` and `generation` already."""

    def restrict(self, new: Object, old: Object, subresource: str) -> None:
        """Takes back changes that this path may not make, beyond the usual split between status and the rest."""

    def allocate(self, new: Object, old: Object | None, dry_run: bool) -> Release:
        """Fills in values that no two objects may have; the result is called once the write has settled."""
        return _nothing

    def is_new_generation(self, new: Object, old: Object) -> bool:
        skipped = self.uncounted
        return {k: v for k, v in new.items() if k not in skipped} != {k: v for k, v in old.items() if k not in skipped}

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        """Returns how long the object stays, marked, after its deletion was asked for."""
        return 0

    def begin_deletion(self, obj: Object) -> bool:
        """Marks an object whose content goes before it does; False for all others."""
        return False

    def is_held(self, obj: Object) -> bool:
        """Returns whether something other than metadata.finalizers keeps an object that is going away."""
        return False

    def for_selection(self, obj: Object) -> Object:
        """Returns the object as field selectors see it."""
        return obj

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        return ()

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        return ()

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        """Returns what is sent back as `Warning: 299` headers."""
        return ()

    async def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        """Returns stored or submitted objects in another version of the same kind. Never changes its input."""
        return [o if o.get("apiVersion") == api_version else {**o, "apiVersion": api_version} for o in objects]
