"""What a diagnosis comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from isvc.kube.masking import plain_text


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

    def without_secrets(self) -> Finding:
        """Returns the finding as people may read it: whatever it quotes may have an address in it."""
        chain = tuple(map(plain_text, self.chain))
        return replace(self, message=plain_text(self.message), remedy=plain_text(self.remedy), chain=chain)
