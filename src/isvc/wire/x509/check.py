"""Reads certificates that may be anybody's: what they are good for, and whether it is time for another one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from isvc.wire.x509.issue import Pair, alternative_name, decode_key


class Certified(NamedTuple):
    hosts: frozenset[str]  # DNS names and addresses
    expires: datetime


def read_certificate(certificate: bytes) -> Certified:
    """Raises ValueError for what is no certificate."""
    from cryptography import x509

    read = x509.load_pem_x509_certificate(certificate)
    try:
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Certified(frozenset(), read.not_valid_after_utc)
    hosts = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return Certified(frozenset(hosts), read.not_valid_after_utc)


def is_due(certificate: bytes, now: datetime, hosts: Sequence[str] = ()) -> bool:
    """Returns whether to replace it: unreadable, in its last third, not yet valid, or not for all of these hosts."""
    from cryptography import x509

    try:
        read = x509.load_pem_x509_certificate(certificate)
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value if hosts else ()
    except (ValueError, x509.ExtensionNotFound):
        return True
    life = read.not_valid_after_utc - read.not_valid_before_utc
    is_fresh = read.not_valid_before_utc <= now <= read.not_valid_after_utc - life / 3
    return not is_fresh or any(alternative_name(host) not in names for host in hosts)


def is_key(key: bytes) -> bool:
    """Returns whether this is a private key of any kind, without a password."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True


def is_pair(pair: Pair) -> bool:
    """Returns whether the key is the certificate's, and such as is issued here: others may have written either."""
    from cryptography import x509

    try:
        return decode_key(pair.key).public_key() == x509.load_pem_x509_certificate(pair.certificate).public_key()
    except (ValueError, TypeError):  # TypeError also if the key asks for a password
        return False


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    issuer = x509.load_pem_x509_certificate(authority)
    try:
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def drop_expired(bundle: bytes, now: datetime) -> bytes:
    """Returns the certificates of a bundle that still count."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        read = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return b""
    return b"".join(each.public_bytes(Encoding.PEM) for each in read if each.not_valid_after_utc > now)


def signing_request_problem(pem: bytes) -> str:
    """Says why this is no request for a certificate; empty if it is one."""
    from cryptography import x509

    if b"-----BEGIN" not in pem:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        x509.load_pem_x509_csr(pem)
    except ValueError as error:
        return str(error)
    return ""
