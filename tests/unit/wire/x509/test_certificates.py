from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from isvc.toolkit.rotation import bundle_patch
from isvc.wire.x509.check import drop_expired, is_due
from isvc.wire.x509.issue import SERVING_LIFE, issue_authority, issue_self_signed, issue_serving

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ("hooks.kserve.svc", "127.0.0.1")


def test_a_serving_certificate_is_signed_by_its_authority_for_its_hosts():
    authority = issue_authority("ours", NOW)
    serving = x509.load_pem_x509_certificate(issue_serving(authority, HOSTS, NOW).certificate)
    serving.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hooks.kserve.svc"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_it_is_due_before_its_time_in_its_last_third_when_hosts_changed_or_when_it_is_no_certificate():
    certificate = issue_serving(issue_authority("ours", NOW), HOSTS, NOW).certificate
    assert not is_due(certificate, NOW + SERVING_LIFE * 0.6, HOSTS)
    assert is_due(certificate, NOW + SERVING_LIFE * 0.7, HOSTS)
    assert is_due(certificate, NOW - timedelta(days=2), HOSTS)  # made when the clock was ahead
    assert is_due(certificate, NOW, (*HOSTS, "another.example"))
    assert is_due(b"nonsense", NOW)
    assert is_due(b"", NOW)


def test_a_certificate_never_outlives_its_authority():
    authority = issue_authority("ours", NOW, timedelta(days=10))
    serving = x509.load_pem_x509_certificate(issue_serving(authority, HOSTS, NOW).certificate)
    assert serving.not_valid_after_utc <= NOW + timedelta(days=10)


def test_a_bundle_sheds_what_has_expired():
    old, new = issue_authority("old", NOW, timedelta(days=1)), issue_authority("new", NOW)
    bundle = new.certificate + old.certificate
    assert drop_expired(bundle, NOW) == bundle
    assert drop_expired(bundle, NOW + timedelta(days=2)) == new.certificate
    assert drop_expired(b"nonsense", NOW) == b""


def test_a_self_signed_certificate_is_trusted_for_its_hosts_by_who_has_it(tmp_path: Path) -> None:
    pair = issue_self_signed(HOSTS, datetime.now(UTC), timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cadata=pair.certificate.decode())
    for host in HOSTS:
        shake_hands(server, client, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client, "another.example")


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """A TLS handshake in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up, server_hostname=host), server.wrap_bio(up, down, server_side=True)]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version() == "TLSv1.3"


def test_keys_do_not_show():
    assert "PRIVATE" not in repr(issue_authority("ours", NOW))


def webhook_configuration(*bundles: str) -> dict:
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"resourceVersion": "5"},
        "webhooks": [{"clientConfig": {"caBundle": bundle} if bundle else {}} for bundle in bundles],
    }


def test_only_bundles_that_differ_are_patched_and_only_on_the_version_that_was_read():
    assert bundle_patch(webhook_configuration("B", "B"), "B") == []
    assert bundle_patch(webhook_configuration("B", "", "A"), "B") == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
        {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "B"},
        {"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": "B"},
    ]


def test_a_crd_without_a_conversion_webhook_is_left_alone():
    crd = {"kind": "CustomResourceDefinition", "metadata": {"resourceVersion": "5"}, "spec": {}}
    assert bundle_patch(crd, "B") == []
    crd["spec"] = {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {}}}}
    assert bundle_patch(crd, "B")[1]["path"] == "/spec/conversion/webhook/clientConfig/caBundle"


def test_webhooks_of_another_service_keep_their_bundle():
    live = webhook_configuration("A", "A")
    for webhook, name in zip(live["webhooks"], ("ours", "theirs"), strict=True):
        webhook["clientConfig"]["service"] = {"name": name}
    assert [change["path"] for change in bundle_patch(live, "B", "ours")[1:]] == ["/webhooks/0/clientConfig/caBundle"]
    assert bundle_patch(live, "B", "neither") == []
