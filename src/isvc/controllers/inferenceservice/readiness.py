"""How ready the components of a service are: what its ingress is planned on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class ComponentReadiness(NamedTuple):
    """Whether a component is ready (True, False or Unknown), and the URL that it was given."""

    status: str
    url: str = ""


Readiness: TypeAlias = Mapping[str, ComponentReadiness]  # by kind of component
