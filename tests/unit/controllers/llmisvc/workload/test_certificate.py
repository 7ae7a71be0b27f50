"""The certificate of a service: when it is made anew, and what it is good for."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID
from tests.unit.controllers.llmisvc.workload.workloads import live, observed_with, workload

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.certificate import LIFE, certificate_secret, renew_in
from isvc.kube.objects import Object, annotations_of
from isvc.kube.resource import SECRETS, SERVICES
from isvc.serving.config import Config
from isvc.serving.llm import labels
from isvc.wire.x509.check import is_key, read_certificate
from isvc.wire.x509.issue import Pair, issue_self_signed

NOW = datetime.fromisoformat("2026-01-01T00:00:00Z")
EXPIRATION = "certificates.kserve.io/expiration"


def is_due(observed: Observed) -> bool:
    return certificate_secret(observed).late is not None


def issued(observed: Observed, *services: Object) -> set[str]:
    """Returns what a new certificate is good for."""
    assert is_due(observed)
    data = certificate_secret(observed).fill(services).manifest["data"]
    return set(read_certificate(base64.b64decode(data["tls.crt"])).hosts)


def certified(observed: Observed, pair: Pair | None = None) -> Observed:
    """Returns the same service with a Secret that has this certificate, or a new one."""
    secret = certificate_secret(observed).fill().manifest
    if pair is not None:
        written = {"tls.key": pair.key, "tls.crt": pair.certificate, "ca.crt": pair.certificate}
        secret = {**secret, "data": {key: base64.b64encode(value).decode() for key, value in written.items()}}
    return observed_with(observed, live={**observed.live, **live(SECRETS, secret)})


def cluster_service(address: str, component: str = labels.WORKLOAD, name: str = "svc") -> dict[Any, Object]:
    metadata = {"name": name, "labels": {labels.COMPONENT: component}}
    return live(SERVICES, {"metadata": metadata, "spec": {"clusterIP": address, "clusterIPs": [address]}})


def test_it_names_the_service_and_localhost() -> None:
    service = "llama-kserve-workload-svc.models.svc"
    assert issued(workload()) == {service, f"{service}.cluster.local", "localhost", "127.0.0.1"}


def test_it_names_the_scheduler_and_the_tokenizer() -> None:
    scheduler = {"pool": {"spec": {"endpointPickerRef": {"name": "picker"}}}, "tokenizer": {}}
    hosts = issued(workload(router={"scheduler": scheduler}))
    assert {"picker.models.svc", "llama-tokenizer.models.svc.cluster.local"} <= hosts


def test_it_names_addresses_of_pods_and_services_but_for_the_scheduler() -> None:
    pods = [
        {"metadata": {}, "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}},
        {"metadata": {"labels": {labels.COMPONENT: labels.SCHEDULER}}, "status": {"podIP": "10.0.0.2"}},
        {"metadata": {}, "status": {}},
    ]
    services = {
        **cluster_service("10.96.0.1"),
        **cluster_service("None", name="headless"),
        **cluster_service("10.96.0.2", labels.SCHEDULER, name="picker"),
    }
    addresses = {"10.0.0.1", "10.96.0.1", "127.0.0.1", "fd00::1"}
    assert issued(workload(more={"pods": pods, "live": services})) == issued(workload()) | addresses


def test_it_names_the_address_of_a_service_that_was_created_before_it() -> None:
    (service,) = cluster_service("10.96.0.1").values()
    late = certificate_secret(workload()).late
    assert late is not None
    assert [key.name for key in late.others] == ["llama-kserve-workload-svc"]
    assert issued(workload(), service) == issued(workload()) | {"10.96.0.1"}


def test_one_that_will_do_is_kept_as_it_is() -> None:
    observed = certified(workload())
    kept = certificate_secret(observed).manifest
    assert kept == observed.live[(SECRETS, "llama-kserve-self-signed-certs")]
    later = observed_with(observed, now="2026-06-01T00:00:00Z")
    assert certificate_secret(later).manifest == kept


def test_an_expiry_keeps_its_time_when_another_field_is_corrected() -> None:
    observed = certified(workload())
    secret = observed.live[(SECRETS, "llama-kserve-self-signed-certs")]
    edited = {**secret, "type": "Opaque", "metadata": {**secret["metadata"], "labels": {}}}
    later = observed_with(observed, live=live(SECRETS, edited), now="2026-06-01T00:00:00Z")
    assert certificate_secret(later).manifest == secret


def test_new_keys_are_of_p256_and_one_of_the_references_is_kept() -> None:
    data = certificate_secret(workload()).fill().manifest["data"]
    made = load_pem_private_key(base64.b64decode(data["tls.key"]), None)
    assert isinstance(made, ec.EllipticCurvePrivateKey)
    assert isinstance(made.curve, ec.SECP256R1)
    assert not is_due(certified(workload(), rsa_pair(issued(workload()))))


def rsa_pair(hosts: set[str]) -> Pair:
    """A certificate of the reference's kind, but for the size of its key, which takes seconds to find."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "llama")])
    alternatives = [*map(x509.DNSName, hosts - {"127.0.0.1"}), x509.IPAddress(ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + LIFE)
    builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    return Pair(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_another_address_makes_it_due_and_one_too_many_does_not() -> None:
    with_address = workload(more={"live": cluster_service("10.96.0.1")})
    observed = certified(with_address)
    secret = {key: value for key, value in observed.live.items() if key[0] == SECRETS}
    assert not is_due(observed_with(observed, live=secret))
    moved = observed_with(observed, live={**secret, **cluster_service("10.96.0.9")})
    assert "10.96.0.9" in issued(moved)


def test_it_is_due_when_its_annotation_says_so_or_it_has_expired() -> None:
    observed = certified(workload())
    expiry = annotations_of(certificate_secret(observed).manifest)[EXPIRATION]
    assert expiry == "2033-12-30T00:00:00Z"
    assert not is_due(observed)
    assert is_due(observed_with(observed, now="2033-12-31T00:00:00Z"))
    brief = certified(workload(), issue_self_signed(tuple(issued(workload())), NOW, timedelta(days=1)))
    assert not is_due(brief)
    assert is_due(observed_with(brief, now="2026-01-03T00:00:00Z"))


def test_it_is_due_when_it_cannot_be_read() -> None:
    observed = certified(workload())
    secret = observed.live[(SECRETS, "llama-kserve-self-signed-certs")]
    for spoiled in ({"tls.key": "bm9uZQ=="}, {"tls.crt": ""}):
        assert is_due(observed_with(observed, live=live(SECRETS, {**secret, "data": {**secret["data"], **spoiled}})))


def test_the_expiry_is_read_from_every_annotation_and_written_to_the_first() -> None:
    scheduler = msgspec.structs.replace(Config().scheduler, expiration_annotations=("new", EXPIRATION))
    config = msgspec.structs.replace(Config(), scheduler=scheduler)
    observed = observed_with(certified(workload()), config=config)
    assert annotations_of(certificate_secret(observed).manifest) == {"new": "2033-12-30T00:00:00Z"}
    assert is_due(observed_with(observed, now="2033-12-31T00:00:00Z"))


def test_a_new_one_is_its_own_authority_and_says_when_to_look_again() -> None:
    observed = workload()
    secret = certificate_secret(observed).fill()
    assert secret.manifest["type"] == "kubernetes.io/tls"
    data = {key: base64.b64decode(value) for key, value in secret.manifest["data"].items()}
    assert data["ca.crt"] == data["tls.crt"]
    assert is_key(data["tls.key"])
    assert renew_in(observed, secret) == (LIFE - LIFE / 5).total_seconds()
