"""The webhooks' certificate of `isvc up`, whatever an earlier start left behind."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from isvc.local import certificate
from isvc.local.certificate import serving_certificate
from isvc.wire import private_files

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def fits(folder: Path, authority: bytes) -> bool:
    """Whether a client that trusts the authority gets through a handshake with what is in the folder."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client = ssl.create_default_context(cadata=authority.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].version() is not None


def test_it_is_kept_and_private(tmp_path: Path) -> None:
    first = serving_certificate(tmp_path, datetime.now(UTC))
    assert fits(tmp_path, first)
    assert serving_certificate(tmp_path, datetime.now(UTC)) == first
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_it_is_renewed_before_it_ends(tmp_path: Path) -> None:
    first = serving_certificate(tmp_path, NOW)
    assert serving_certificate(tmp_path, NOW + timedelta(days=200)) == first
    assert serving_certificate(tmp_path, NOW + timedelta(days=300)) != first


@pytest.mark.parametrize("renames", range(4))
def test_a_kill_between_any_two_steps_breaks_no_later_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    serving_certificate(tmp_path, datetime.now(UTC) - timedelta(days=300))  # due

    def killed_after(path: Path, content: bytes, left: list[int] = [renames]) -> None:  # noqa: B006
        if left[0] == 0:
            path.with_name(f"{path.name}.new").write_bytes(content[:10])
            raise KeyboardInterrupt
        left[0] -= 1
        private_files.write_private(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(certificate, "write_private", killed_after)
        try:
            serving_certificate(tmp_path, datetime.now(UTC))
        except KeyboardInterrupt:
            assert renames < 3
    assert fits(tmp_path, serving_certificate(tmp_path, datetime.now(UTC)))


@pytest.mark.parametrize("damage", ["empty", "cut", "another key", "garbage"])
def test_what_does_not_fit_is_made_anew(tmp_path: Path, damage: str) -> None:
    serving_certificate(tmp_path, datetime.now(UTC))
    bundle = tmp_path / "bundle.pem"
    content = bundle.read_bytes()
    other = tmp_path / "other"
    os.mkdir(other)
    serving_certificate(other, datetime.now(UTC))
    key = (other / "bundle.pem").read_bytes().partition(b"-----BEGIN CERT")[0]
    spoiled = {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "another key": key + content[content.index(b"-----BEGIN CERT") :],
        "garbage": b"\0" * 100,
    }
    bundle.write_bytes(spoiled[damage])
    assert fits(tmp_path, serving_certificate(tmp_path, datetime.now(UTC)))
