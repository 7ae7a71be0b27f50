"""Certificates and tokens, kept in a folder and made when they are missing, do not fit their keys, or near their end.

ca.crt ca.key           signs everything below
apiserver.crt .key      what the server shows
tls.crt tls.key         what a node's log endpoint shows, and the webhooks beside it
admin.crt .key          a client certificate of system:masters
admin.token             the same as a bearer token
kubelet.token           with which the server asks a node for logs
service-accounts.key    signs the tokens of service accounts; made with the first one
authority, hosts        written last: what the certificates above are for, and when to replace them
"""

from __future__ import annotations

import csv
import re
import secrets
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from isvc.apiserver.access.impersonation import AUTHENTICATED
from isvc.apiserver.request import User
from isvc.wire.private_files import write_private
from isvc.wire.x509.files import is_loadable
from isvc.wire.x509.issue import BACKDATED, Pair, issue_authority, issue_client, issue_serving

ADMIN = User("isvc-admin", ("system:masters", AUTHENTICATED))
LIFETIME = timedelta(days=3650)
SERVING_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Identity:
    folder: Path
    admin_token: str
    kubelet_token: str

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def serving(self) -> tuple[Path, Path]:
        return self.folder / "apiserver.crt", self.folder / "apiserver.key"

    def server_context(self) -> ssl.SSLContext:
        """Makes the TLS context of our own port, without a certificate yet."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(self.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self) -> ssl.SSLContext:
        """Makes the TLS context of calls to a node, which shows a certificate of our CA."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.check_hostname = False
        return context


def load(folder: Path, hosts: list[str], now: datetime | None = None) -> Identity:
    """Returns what the folder holds, completed; hosts are names and addresses that the server is reached by."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = now or datetime.now(UTC)
    authority, serving = folder / "authority", folder / "hosts"
    # A mark goes before what it vouches for is replaced, and comes back after: a kill in between is noticed.
    if not _is_current(authority, ("ca", "admin"), [], LIFETIME, now):
        authority.unlink(missing_ok=True)
        serving.unlink(missing_ok=True)
        _make(folder, now)
        _vouch(authority, [], now + LIFETIME * 2 / 3)
    renew_serving(folder, hosts, now)
    return Identity(folder, _token(folder / "admin.token"), _token(folder / "kubelet.token"))


def renew_serving(folder: Path, hosts: list[str], now: datetime | None = None) -> bool:
    """Makes what the server and a node show anew where that is due, also while they run; says whether it was."""
    now, mark = now or datetime.now(UTC), folder / "hosts"
    if _is_current(mark, ("apiserver", "tls"), hosts, SERVING_LIFETIME, now):
        return False
    mark.unlink(missing_ok=True)
    _make_serving(folder, hosts, now)
    _vouch(mark, hosts, now + SERVING_LIFETIME * 2 / 3)
    return True


def _vouch(mark: Path, hosts: list[str], until: datetime) -> None:
    write_private(mark, "\n".join([*hosts, until.isoformat()]).encode())


def _is_current(mark: Path, names: tuple[str, ...], hosts: list[str], lifetime: timedelta, now: datetime) -> bool:
    """Returns whether certificates are there, for these hosts, that fit their keys and are not in their last third."""
    try:
        *known, until = mark.read_text().split()
        left = datetime.fromisoformat(until) - now
    except (OSError, ValueError):
        return False
    pairs = [(mark.with_name(f"{name}.crt"), mark.with_name(f"{name}.key")) for name in names]
    is_young = timedelta() < left <= lifetime * 2 / 3 + BACKDATED
    return known == hosts and is_young and all(is_loadable(*pair) for pair in pairs)


def user_of_certificate(certificate: dict[str, Any]) -> User | None:
    """Reads the user from the common name and the groups from the organizations."""
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def _token(path: Path) -> str:
    """Returns the token in the file, which is made anew when it is none, after a full disk or somebody's edit."""
    try:
        token = path.read_text(errors="replace")
    except FileNotFoundError:
        token = ""
    if not _TOKEN.fullmatch(token):
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
    return token


def _make(folder: Path, now: datetime) -> None:
    """Makes an authority, and the administrator's certificate."""
    authority = issue_authority("isvc", now, LIFETIME)
    _write(folder, "ca", authority)
    groups = [group for group in ADMIN.groups if group != AUTHENTICATED]
    _write(folder, "admin", issue_client(authority, ADMIN.username, groups, now, LIFETIME))


def _make_serving(folder: Path, hosts: list[str], now: datetime) -> None:
    """Makes what the server and a node show to their clients; anew when they are reached by other names."""
    authority = Pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    for name in ("apiserver", "tls"):
        _write(folder, name, issue_serving(authority, hosts, now, SERVING_LIFETIME))


def _write(folder: Path, name: str, pair: Pair) -> None:
    write_private(folder / f"{name}.crt", pair.certificate)
    write_private(folder / f"{name}.key", pair.key)


@dataclass(frozen=True, slots=True)
class Credentials:
    """`serving` is a certificate with its key; certificates of clients are accepted from `client_ca`, too."""

    serving: tuple[Path, Path] | None = None
    client_ca: Path | None = None
    tokens: dict[str, User] = field(default_factory=dict)


def read_tokens(path: Path) -> dict[str, User]:
    """Returns a token file as kube-apiserver reads it: token, user, uid, and groups in quotes."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) >= 3]
    return {token: User(name, (*_groups(rest), AUTHENTICATED), uid) for token, name, uid, *rest in rows}


def _groups(rest: list[str]) -> list[str]:
    return [group.strip() for group in rest[0].split(",")] if rest and rest[0] else []
