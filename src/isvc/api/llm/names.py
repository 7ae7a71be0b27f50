"""Names as the Gateway API has them, and references made of them."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Required, Schema, Spec, zero
from isvc.kube.names import LABEL, SUBDOMAIN

ObjectName = Annotated[str, Schema(minLength=1, maxLength=253)]
Namespace = Annotated[str, Schema(minLength=1, maxLength=63, pattern=f"^{LABEL}$")]
SectionName = Annotated[str, Schema(minLength=1, maxLength=253, pattern=f"^{SUBDOMAIN}$")]
Group = Annotated[str, Schema(maxLength=253, pattern=f"^$|^{SUBDOMAIN}$")]
KindName = Annotated[str, Schema(minLength=1, maxLength=63, pattern="^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")]


class UntypedObjectReference(Spec):
    """An object whose kind is clear from where it is named."""

    name: ObjectName = ""
    """Name of the object."""
    namespace: Namespace = ""
    """Namespace of the object."""


class GatewayObjectReference(UntypedObjectReference):
    """A Gateway, or one of its listeners."""

    section_name: SectionName | None = None
    """Name of the listener; all of them when left out."""


class ObjectReference(Spec):
    """An object of some kind."""

    group: Required[Group] = zero(str)
    """API group of the object."""
    kind: Required[KindName] = zero(str)
    """Kind of the object."""
    name: Required[ObjectName] = zero(str)
    """Name of the object."""
    namespace: Namespace | None = None
    """Namespace of the object."""
