"""Certificates and tokens that somebody else made, in place of or beside the server's own."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

from isvc.apiserver.access.impersonation import AUTHENTICATED
from isvc.apiserver.request import User


@dataclass(frozen=True, slots=True)
class Credentials:
    """`serving` is a certificate with its key; certificates of clients are accepted from `client_ca`, too."""

    serving: tuple[Path, Path] | None = None
    client_ca: Path | None = None
    tokens: dict[str, User] = field(default_factory=dict)


def read_tokens(path: Path) -> dict[str, User]:
    """A token file as kube-apiserver reads it: token, user, uid, and groups in quotes."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) >= 3]
    return {token: User(name, (*_groups(rest), AUTHENTICATED), uid) for token, name, uid, *rest in rows}


def _groups(rest: list[str]) -> list[str]:
    return [group.strip() for group in rest[0].split(",")] if rest and rest[0] else []
