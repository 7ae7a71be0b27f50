"""https://*.localhost: certificates for the names that clients ask for, and an authority for no others."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509

from isvc.local.gateway.listener import Listener
from isvc.local.gateway.proxy import Proxy
from isvc.local.gateway.tls import Certificates


class Clock:
    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def now(self) -> datetime:
        return self.time


@pytest.fixture
async def secure(gateway, sites, tmp_path: Path):
    """A gateway with TLS, its port, and a client's context that trusts its authority."""

    async def scheme(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers["X-Forwarded-Proto"])

    gateway.service("s", (await sites(scheme), True))
    gateway.route("*.localhost", ("s", 1))
    clock = Clock()
    certificates = Certificates(tmp_path / "tls", clock.now)
    proxy = Proxy(lambda: gateway.table, gateway.backends, gateway.guard)
    listener = Listener(proxy)
    port = await listener.listen("127.0.0.1", 0, certificates.context())
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    yield port, trusting, clock
    await listener.close()
    await proxy.close()


async def certificate(port: int, name: str, context: ssl.SSLContext) -> x509.Certificate:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(shown)


async def test_any_name_of_this_machine_is_served(secure):
    port, trusting, _ = secure
    for name in ("iris-default.localhost", "a.b.localhost"):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=name)
        writer.close()
    for address in ("localhost", "127.0.0.1"):
        await certificate(port, address, trusting)
    async with aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}/"
        async with session.get(url, ssl=trusting, headers={"Host": "iris-default.localhost"}) as answer:
            assert (answer.status, await answer.text()) == (200, "https")


async def test_http2_is_chosen_in_the_handshake(secure):
    port, trusting, _ = secure
    for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)):
        if offered:
            trusting.set_alpn_protocols(offered)
        else:
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="x.localhost")
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
        writer.close()


async def test_other_names_get_no_certificate_and_the_authority_could_not_sign_one(secure, tmp_path: Path):
    port, trusting, _ = secure
    for name in ("example.com", "localhost.example.com", "xlocalhost"):
        with pytest.raises(ssl.SSLCertVerificationError):
            await certificate(port, name, trusting)
    authority = x509.load_pem_x509_certificate((tmp_path / "tls" / "ca.crt").read_bytes())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert [str(each.value) for each in limits.value.permitted_subtrees or []] == [
        "localhost",
        "127.0.0.0/8",
        "::1/128",
    ]
    assert (tmp_path / "tls" / "authority.pem").stat().st_mode & 0o077 == 0


async def test_certificates_are_replaced_before_they_expire_and_the_authority_is_kept(secure, tmp_path: Path):
    port, trusting, clock = secure
    first = await certificate(port, "a.localhost", trusting)
    assert (await certificate(port, "a.localhost", trusting)).serial_number == first.serial_number
    clock.time += timedelta(days=25)
    second = await certificate(port, "a.localhost", _at_any_time(trusting))
    assert second.not_valid_after_utc > first.not_valid_after_utc
    before = (tmp_path / "tls" / "ca.crt").read_bytes()
    Certificates(tmp_path / "tls", clock.now)
    assert (tmp_path / "tls" / "ca.crt").read_bytes() == before
    clock.time += timedelta(days=3000)
    Certificates(tmp_path / "tls", clock.now)
    assert (tmp_path / "tls" / "ca.crt").read_bytes() != before


def _at_any_time(context: ssl.SSLContext) -> ssl.SSLContext:
    """The clock of the client is the real one, for which the certificate begins in the future."""
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_a_damaged_authority_is_made_anew(tmp_path: Path):
    clock = Clock()
    folder = tmp_path / "tls"
    Certificates(folder, clock.now)
    for damage in (b"", b"nonsense", (folder / "authority.pem").read_bytes()[:200]):
        (folder / "authority.pem").write_bytes(damage)
        Certificates(folder, clock.now).context()


async def test_what_is_no_tls_ends_the_connection(secure):
    port, trusting, _ = secure
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(60):
        assert not (await reader.read()).startswith(b"HTTP")
    writer.close()
    await certificate(port, "localhost", trusting)
