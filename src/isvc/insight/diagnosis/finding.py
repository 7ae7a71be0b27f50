"""What a diagnosis comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    BLOCKS = "blocks"  # the service is not ready because of it, and will not be before somebody acts
    WAITS = "waits"  # it is on its way, as far as can be seen
    WARNS = "warns"  # the service works, but not as one would expect


class Place(NamedTuple):
    """A container whose last log lines show more."""

    pod: str
    container: str
    previous: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `message` names the object at fault, `remedy` what would mend it.

    `chain` leads from the service to the object: what each link is, and what it says.
    """

    cause: str
    message: str
    remedy: str = ""
    level: Level = Level.BLOCKS
    chain: tuple[str, ...] = ()
    place: Place | None = None
    log: tuple[str, ...] = ()
