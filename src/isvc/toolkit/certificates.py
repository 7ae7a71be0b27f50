"""Issues certificates: an authority, and serving certificates signed by it. Pure but for randomness."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_LIFE = timedelta(days=3650)
SERVING_LIFE = timedelta(days=365)
BACKDATED = timedelta(minutes=5)  # clocks differ


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(...)"


def issue_authority(name: str, now: datetime, life: timedelta = AUTHORITY_LIFE, only_for: Sequence[str] = ()) -> Pair:
    """`only_for` are the domains and networks for which it may sign, if not for all."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, now, life).issuer_name(_name(name)).public_key(key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    if only_for:
        permitted = [_permitted(each) for each in only_for]
        builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _signed(builder.add_extension(identifier, critical=False), key, key)


def issue_serving(authority: Pair, hosts: Sequence[str], now: datetime, life: timedelta = SERVING_LIFE) -> Pair:
    """A certificate for these DNS names and addresses."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = load_pem_private_key(authority.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    life = min(life, issuer.not_valid_after_utc - now)
    builder = _builder(hosts[0], now, life).issuer_name(issuer.subject).public_key(key.public_key())
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return _signed(_serving(builder, hosts).add_extension(authority_id, critical=False), key, issuer_key)


def issue_self_signed(hosts: Sequence[str], now: datetime, life: timedelta) -> Pair:
    """A serving certificate for these DNS names and addresses that is its own authority."""
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(hosts[0], now, life).issuer_name(_name(hosts[0])).public_key(key.public_key())
    return _signed(_serving(builder, hosts), key, key)


def server_context(pair: Pair) -> ssl.SSLContext:
    """A context that serves with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # the module reads files alone
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context


def is_due(certificate: bytes, now: datetime, hosts: Sequence[str] = ()) -> bool:
    """Whether it is time to replace it: unreadable, in its last third, not yet valid, or not for all of these hosts."""
    from cryptography import x509

    try:
        read = x509.load_pem_x509_certificate(certificate)
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value if hosts else ()
    except (ValueError, x509.ExtensionNotFound):
        return True
    life = read.not_valid_after_utc - read.not_valid_before_utc
    is_fresh = read.not_valid_before_utc <= now <= read.not_valid_after_utc - life / 3
    return not is_fresh or any(_alternative(host) not in names for host in hosts)


def is_pair(pair: Pair) -> bool:
    """Whether the key is the certificate's, and such as is issued here: others may have written either."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pair.key, None)
        certified = x509.load_pem_x509_certificate(pair.certificate).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: the key asks for a password
        return False
    return isinstance(key, ec.EllipticCurvePrivateKey) and key.public_key() == certified


def is_issued_by(certificate: bytes, authority: bytes) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    issuer = x509.load_pem_x509_certificate(authority)
    try:
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def unexpired(bundle: bytes, now: datetime) -> bytes:
    """The certificates of a bundle that still count."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        read = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return b""
    return b"".join(each.public_bytes(Encoding.PEM) for each in read if each.not_valid_after_utc > now)


def _builder(name: str, now: datetime, life: timedelta) -> x509.CertificateBuilder:
    from cryptography import x509

    builder = x509.CertificateBuilder().subject_name(_name(name)).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - BACKDATED).not_valid_after(now + life)


def _serving(builder: x509.CertificateBuilder, hosts: Sequence[str]) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(digital_signature=True), critical=True)
    return builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(by, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(certificate.public_bytes(Encoding.PEM), secret)


def _name(common: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _alternative(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _permitted(domain_or_network: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_network(domain_or_network))
    except ValueError:
        return x509.DNSName(domain_or_network)


def _usage(*, key_cert_sign: bool = False, crl_sign: bool = False, digital_signature: bool = False) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
