"""Certificates and tokens, kept in a folder and made when they are missing, do not fit their keys, or near their end.

ca.crt ca.key           signs everything below
apiserver.crt .key      what the server shows
kubelet.crt .key        what a node's log endpoint shows
admin.crt .key          a client certificate of system:masters
admin.token             the same as a bearer token
kubelet.token           with which the server asks a node for logs
service-accounts.key    signs the tokens of service accounts; made with the first one
authority, hosts        written last: what the certificates above are for, and when to replace them
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isvc.apiserver.request import User

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = User("isvc-admin", ("system:masters", "system:authenticated"))
LIFETIME = timedelta(days=3650)
SERVING_LIFETIME = timedelta(days=365)
BACKDATED = timedelta(days=1)  # a laptop's clock may be hours ahead until the network sets it


@dataclass(frozen=True, slots=True)
class Identity:
    folder: Path
    admin_token: str
    kubelet_token: str

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.show_certificate(context)
        context.load_verify_locations(self.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    def show_certificate(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.folder / "apiserver.crt", self.folder / "apiserver.key")

    def client_context(self) -> ssl.SSLContext:
        """For calls to a node, which shows a certificate of our CA."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.check_hostname = False
        return context


def load(folder: Path, hosts: list[str], now: datetime | None = None) -> Identity:
    """What the folder holds, completed; hosts are names and addresses that the server is reached by."""
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
    if _is_current(mark, ("apiserver", "kubelet"), hosts, SERVING_LIFETIME, now):
        return False
    mark.unlink(missing_ok=True)
    _make_serving(folder, hosts, now)
    _vouch(mark, hosts, now + SERVING_LIFETIME * 2 / 3)
    return True


def _vouch(mark: Path, hosts: list[str], until: datetime) -> None:
    write_private(mark, "\n".join([*hosts, until.isoformat()]).encode())


def _is_current(mark: Path, names: tuple[str, ...], hosts: list[str], lifetime: timedelta, now: datetime) -> bool:
    """Whether the certificates are there, for these hosts, fit their keys, are valid and not in their last third."""
    try:
        *known, until = mark.read_text().split()
        for name in names:
            pair = (mark.with_name(f"{name}.crt"), mark.with_name(f"{name}.key"))
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair)
        left = datetime.fromisoformat(until) - now
        return known == hosts and timedelta() < left <= lifetime * 2 / 3 + BACKDATED
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        return False


def user_of_certificate(certificate: dict[str, Any]) -> User | None:
    """The common name is the user, organizations are groups."""
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, "system:authenticated")) if name else None


def write_private(path: Path, data: bytes) -> None:
    """Writes a file that only its owner can read, in one step."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    fresh.replace(path)


_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def _token(path: Path) -> str:
    """The token in the file, which is made anew when it is none, after a full disk or somebody's edit."""
    try:
        token = path.read_text(errors="replace")
    except FileNotFoundError:
        token = ""
    if not _TOKEN.fullmatch(token):
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
    return token


def _make(folder: Path, now: datetime) -> None:
    """An authority, and the administrator's certificate."""
    from cryptography.hazmat.primitives.asymmetric import ec

    authority, admin = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _certificate("isvc", "", authority.public_key(), authority, [], now, authority=True)
    _write(folder, "ca", authority, root)
    user = _certificate(ADMIN.username, "system:masters", admin.public_key(), authority, [], now)
    _write(folder, "admin", admin, user)


def _make_serving(folder: Path, hosts: list[str], now: datetime) -> None:
    """What the server and a node show to their clients; made anew when they are reached by other names."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    authority = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(authority, ec.EllipticCurvePrivateKey)
    for name, organization in (("apiserver", ""), ("kubelet", "system:nodes")):
        key = ec.generate_private_key(ec.SECP256R1())
        _write(folder, name, key, _certificate(name, organization, key.public_key(), authority, hosts, now))


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))
    write_private(folder / f"{name}.key", pem)


def _certificate(
    name: str,
    organization: str,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    hosts: list[str],
    now: datetime,
    *,
    authority: bool = False,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "isvc")]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + (SERVING_LIFETIME if hosts else LIFETIME))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if hosts:
        names: list[x509.GeneralName] = [_general_name(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
