"""What Envoy starts with: `bootstrap.yaml`, and the values in it that differ from start to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from isvc.kube.go_yaml import load_all
from isvc.local.gateway.envoy.guard import foreign_policies
from isvc.local.gateway.envoy.replies import local_replies
from isvc.local.gateway.envoy.types import Json

ADMIN_SOCKET: Final = "admin.sock"
OWN_SOCKET: Final = "isvc.sock"
TERMINAL: Final = "/dev/stdout"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long clients may take, in seconds."""

    headers: float = 75.0  # to send a request's
    idle: float = 300.0  # between two requests
    stream: float = 3600.0  # without a byte in either direction, while a server thinks
    flush: float = 75.0  # to take the end of an answer
    close: float = 1.0  # to end a connection themselves that is ended for what they did


@dataclass(frozen=True, slots=True)
class Front:
    """What all listeners for people share."""

    allowed_origins: tuple[str, ...] = ()
    access_log: str = ""  # a file; /dev/stdout for the terminal
    access_log_json: bool = False
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user of `isvc up` asked for, and the ports that were found."""

    port: int
    pods_port: int
    tls_port: int | None = None
    front: Front = field(default_factory=Front)
    sandbox: bool = False


def bootstrap(settings: Settings, addresses: Sequence[str], *, login: str, proxy: str = "") -> Json:
    """Returns the configuration of a process whose working directory has the sockets.

    `login` is what pods send as Proxy-Authorization, `proxy` the way to hosts outside that this machine's environment
    asks for.
    """
    front, outside = settings.front, urlsplit(proxy)
    policies = foreign_policies(front.allowed_origins)
    address, *others = (_address(each, settings.port) for each in addresses)
    tls_address, *tls_others = (_address(each, settings.tls_port or 0) for each in addresses)
    values = {
        "front_address": address,
        "front_others": [{"address": each} for each in others],
        "tls_address": tls_address,
        "tls_others": [{"address": each} for each in tls_others],
        "pods_port": settings.pods_port,
        "login": login,
        "foreign_fetched": policies["foreign.fetched"],
        "foreign_asked": policies["foreign.asked"]["permissions"],
        "replies": local_replies(),
        "log": front.access_log,
        "proxy": _address(outside.hostname or "", outside.port or 80),
        **{name: f"{seconds:g}s" for name, seconds in asdict(front.limits).items()},
    }
    [found] = load_all((files(__package__) / "bootstrap.yaml").read_text())
    shared, style = found.pop("shared"), "json" if front.access_log_json else "text"
    values |= {
        "logger": _fill(shared[f"{style}_logger"], values) if front.access_log else None,
        "log_filter": shared[f"{style}_log_filter"] if front.access_log else None,
        "pages_filter": shared["allowed_pages"] if front.allowed_origins else None,
        "sandbox_filter": shared["not_this_machine"] if settings.sandbox else None,
    }
    unused = {*(["outside-proxy"] if not proxy else []), *(["tls"] if settings.tls_port is None else [])}
    for kind, parts in found["static_resources"].items():
        found["static_resources"][kind] = [each for each in parts if each["name"] not in unused]
    return {name: _fill(part, values) for name, part in found.items()}


def _fill(part: Any, values: Mapping[str, Any]) -> Any:
    """Returns a part with values for the $names in it; a list does without those that have none."""
    match part:
        case dict():
            return {key: _fill(each, values) for key, each in part.items()}
        case list():
            return [filled for each in part if (filled := _fill(each, values)) is not None]
        case str() if part.startswith("$"):
            return values[part[1:]]
        case _:
            return part


def _address(host: str, port: int) -> Json:
    return {"socket_address": {"address": host, "port_value": port}}
