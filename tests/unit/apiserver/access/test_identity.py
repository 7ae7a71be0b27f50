"""The server's certificates and tokens across starts: kept, completed, renewed before they end."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.waiting import until

from isvc.apiserver import server
from isvc.apiserver.access import identity
from isvc.apiserver.access.identity import LIFETIME, SERVING_LIFETIME, load
from isvc.wire.private_files import write_private

HOSTS = ["localhost", "127.0.0.1"]
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".new")}


def check(folder: Path) -> None:
    """Every key fits its certificate, and every certificate is the authority's."""
    from cryptography.x509 import load_pem_x509_certificate as read

    authority = read((folder / "ca.crt").read_bytes())
    for name in ("ca", "admin", "apiserver", "tls"):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        read((folder / f"{name}.crt").read_bytes()).verify_directly_issued_by(authority)


def test_what_is_there_stays(tmp_path: Path) -> None:
    load(tmp_path, HOSTS, NOW)
    before = contents(tmp_path)
    load(tmp_path, HOSTS, NOW)
    assert contents(tmp_path) == before
    check(tmp_path)


def test_other_hosts_get_another_certificate_of_the_same_authority(tmp_path: Path) -> None:
    load(tmp_path, HOSTS, NOW)
    before = contents(tmp_path)
    load(tmp_path, ["isvc.test"], NOW)
    after = contents(tmp_path)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["apiserver.crt"] != before["apiserver.crt"]
    check(tmp_path)


def test_a_token_that_is_none_is_made_anew(tmp_path: Path) -> None:
    first = load(tmp_path, HOSTS, NOW)
    for garbage in (b"", b"garbage\n", b"\xff" * 43):
        (tmp_path / "admin.token").write_bytes(garbage)
        found = load(tmp_path, HOSTS, NOW)
        assert len(found.admin_token) == len(first.admin_token)
        assert (tmp_path / "admin.token").read_text() == found.admin_token
        assert found.kubelet_token == first.kubelet_token


def test_all_are_renewed_before_they_end_and_tokens_stay(tmp_path: Path) -> None:
    load(tmp_path, HOSTS, NOW)
    before = contents(tmp_path)
    load(tmp_path, HOSTS, NOW + SERVING_LIFETIME * 0.6)
    assert contents(tmp_path) == before
    load(tmp_path, HOSTS, NOW + SERVING_LIFETIME * 0.7)
    served = {name for name, content in contents(tmp_path).items() if before[name] != content}
    assert served == {"apiserver.crt", "apiserver.key", "tls.crt", "tls.key", "hosts"}
    check(tmp_path)
    load(tmp_path, HOSTS, NOW + LIFETIME * 0.7)
    after = contents(tmp_path)
    assert {name for name in before if before[name] == after[name]} == {"admin.token", "kubelet.token"}
    check(tmp_path)


def test_those_of_a_clock_that_was_far_ahead_are_made_anew(tmp_path: Path) -> None:
    load(tmp_path, HOSTS, NOW)
    before = contents(tmp_path)
    load(tmp_path, HOSTS, NOW - timedelta(hours=14))
    assert contents(tmp_path) == before
    load(tmp_path, HOSTS, NOW - timedelta(days=2))
    after = contents(tmp_path)
    assert {name for name in before if before[name] == after[name]} == {"admin.token", "kubelet.token"}
    check(tmp_path)


async def test_a_running_server_shows_the_renewed_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RENEWAL_SECONDS", 0.02)
    running = server.Server(tmp_path, ephemeral=True)
    await running.start()
    trusted = ssl.create_default_context(cafile=str(running.identity.ca))
    host, port = running.url.removeprefix("https://").split(":")

    async def shown() -> str:
        _, writer = await asyncio.open_connection(host, int(port), ssl=trusted)
        certificate: dict[str, str] = writer.get_extra_info("peercert")
        writer.close()
        return certificate["serialNumber"]

    async def is_another() -> bool:
        return await shown() != first

    try:
        first = await shown()
        assert not await is_another()
        mark = running.identity.folder / "hosts"
        *hosts, _ = mark.read_text().split()
        mark.write_text("\n".join([*hosts, NOW.isoformat()]))
        await until(is_another, "the renewed certificate")
    finally:
        await running.stop()


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "admin.crt", "apiserver.key", "tls.crt", "authority", "hosts"])
@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_what_is_broken_is_made_anew(tmp_path: Path, name: str, content: bytes | None) -> None:
    load(tmp_path, HOSTS, NOW)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    load(tmp_path, HOSTS, NOW)
    check(tmp_path)


@pytest.mark.parametrize("writes", range(10))
def test_a_kill_between_any_two_writes_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    load(tmp_path, HOSTS, NOW)
    left = [writes]

    def killed_after(path: Path, data: bytes) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write_private(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(identity, "write_private", killed_after)
        with pytest.raises(KeyboardInterrupt):
            load(tmp_path, HOSTS, NOW + LIFETIME * 0.7)
    load(tmp_path, HOSTS, NOW)
    check(tmp_path)
