"""What the user of `isvc up` chose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choices:
    """What the flags of the same names say. For ports, None takes the default, or a free one when that is busy."""

    api_port: int | None = None
    gateway_port: int | None = None
    ephemeral: bool = False
    durable: bool = False
    simulate: bool = False
    allow_origins: tuple[str, ...] = ()
    sandbox: bool = False
    tls: bool = False
    access_log: str = ""  # a file, or - for the terminal
    access_log_format: str = "combined"  # or json
    warm_up: bool = False
