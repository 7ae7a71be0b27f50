"""Issues certificates: an authority, and what it signs for servers and for clients. Pure but for randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY_LIFE = timedelta(days=3650)
SERVING_LIFE = timedelta(days=365)
BACKDATED = timedelta(days=1)  # clocks differ, and a laptop's may be hours ahead until the network sets it


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

    key = new_key()
    builder = _builder(_name(name), now, life).issuer_name(_name(name)).public_key(key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    if only_for:
        permitted = [_general_name(each) for each in only_for]
        builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _sign(builder.add_extension(identifier, critical=False), key, key)


def issue_serving(authority: Pair, hosts: Sequence[str], now: datetime, life: timedelta = SERVING_LIFE) -> Pair:
    """Returns a certificate for these DNS names and addresses."""
    return _issue(authority, _name(hosts[0]), hosts, now, life)


def issue_client(authority: Pair, user: str, groups: Sequence[str], now: datetime, life: timedelta) -> Pair:
    """Returns a certificate with which a client is this user, as Kubernetes reads it."""
    return _issue(authority, _name(user, groups), (), now, life)


def issue_self_signed(
    hosts: Sequence[str], now: datetime, life: timedelta, key: ec.EllipticCurvePrivateKey | None = None
) -> Pair:
    """Returns a serving certificate for these DNS names and addresses that is its own authority."""
    key = key or new_key()
    builder = _builder(_name(hosts[0]), now, life).issuer_name(_name(hosts[0])).public_key(key.public_key())
    return _sign(_for_use(builder, hosts), key, key)


def new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Returns the key as PEM, without a password."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def decode_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError or TypeError for what is no key of the kind that is made here."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key is not one of an elliptic curve")
    return key


def alternative_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _issue(authority: Pair, subject: x509.Name, hosts: Sequence[str], now: datetime, life: timedelta) -> Pair:
    from cryptography import x509

    issuer, issuer_key = x509.load_pem_x509_certificate(authority.certificate), decode_key(authority.key)
    key, life = new_key(), min(life, issuer.not_valid_after_utc - now)
    builder = _builder(subject, now, life).issuer_name(issuer.subject).public_key(key.public_key())
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return _sign(_for_use(builder, hosts).add_extension(authority_id, critical=False), key, issuer_key)


def _builder(subject: x509.Name, now: datetime, life: timedelta) -> x509.CertificateBuilder:
    from cryptography import x509

    builder = x509.CertificateBuilder().subject_name(subject).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - min(BACKDATED, life)).not_valid_after(now + life)


def _for_use(builder: x509.CertificateBuilder, hosts: Sequence[str]) -> x509.CertificateBuilder:
    """Allows use by a server that is reached under these names, or by a client where there are none."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    if hosts:
        names = x509.SubjectAlternativeName([alternative_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    use = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(digital_signature=True), critical=True)
    return builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    return Pair(builder.sign(by, hashes.SHA256()).public_bytes(Encoding.PEM), encode_key(key))


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(domain_or_network: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_network(domain_or_network))
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
