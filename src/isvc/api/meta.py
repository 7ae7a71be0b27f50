"""What every object and every status of ours carries."""

from __future__ import annotations

from typing import Annotated, Any, Self

import msgspec

from isvc.api.codec import decode, encode
from isvc.api.fields import Inline, Int64, Required, Spec, zero
from isvc.kube.objects import Object


class ObjectMeta(Spec):
    """An object's metadata: what we read, by name, and the rest as it came."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[Object] = []
    rest: Annotated[Object, Inline("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")] = {}


class Kind(Spec):
    """A whole object. `decode` takes what came over the wire, `encode` gives it back."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def decode(cls, obj: Any) -> Self:
        return decode(cls, obj)

    def encode(self) -> Object:
        return encode(self)


class Condition(Spec):
    """One statement about an object: true, false or unknown, with a reason and a message for people."""

    type: Required[str] = zero(str)
    """What is stated, for example Ready."""
    status: Required[str] = zero(str)
    """True, False or Unknown."""
    severity: str = ""
    """How bad it is when it is not True: empty means error, Info means it does not matter for Ready."""
    last_transition_time: str | None = None
    """When the status last changed."""
    reason: str = ""
    """One word for machines."""
    message: str = ""
    """A sentence for people."""


class Addressable(Spec):
    """Where something answers."""

    name: str | None = None
    """What kind of address this is."""
    url: str | None = None
    """The address."""
    ca_certs: str | None = msgspec.field(default=None, name="CACerts")
    """Certificates in PEM form that the address is to be trusted with."""
    audience: str | None = None
    """The audience that tokens for this address are made for."""


class Status(Spec):
    """What every status begins with."""

    observed_generation: Int64 = 0
    """The generation of the spec that this status describes."""
    conditions: list[Condition] = []
    """The newest statement of each type."""
    annotations: dict[str, str] = {}
    """Further status, kept as annotations."""
