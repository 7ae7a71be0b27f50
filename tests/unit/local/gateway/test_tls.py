"""https://*.localhost: certificates for the names that clients ask for, and an authority for no others."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from cryptography import x509
from tests.ports import free_port
from tests.unit.local.gateway.conftest import Cluster, running_gateway, running_sites

from isvc.local.gateway.envoy.bootstrap import Front
from isvc.local.gateway.envoy.messages import Secret
from isvc.local.gateway.tls import Certificates


class Clock:
    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def now(self) -> datetime:
        return self.time


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def secure(tmp_path_factory):
    async with secure_gateway(tmp_path_factory.mktemp("secure")) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def aging(tmp_path):
    """One whose clock a test may set."""
    async with secure_gateway(tmp_path) as found:
        yield found


@asynccontextmanager
async def secure_gateway(folder: Path) -> AsyncIterator[tuple[int, ssl.SSLContext, Clock, Path, Cluster]]:
    """Yields the port of a gateway with TLS, a client's context that trusts its authority, and the clock of both."""

    async def scheme(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers["X-Forwarded-Proto"])

    clock, port = Clock(), free_port()
    certificates = Certificates(folder / "tls", clock.now)
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    async with (
        running_sites() as sites,
        running_gateway(folder, Front(), tls_port=port, certificates=certificates) as gateway,
    ):
        await gateway.service("s", (await sites(scheme), True))
        await gateway.route("*.localhost", ("s", 1))
        yield port, trusting, clock, folder / "tls", gateway


async def certificate(port: int, name: str, context: ssl.SSLContext) -> x509.Certificate:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(shown)


async def test_any_name_of_this_machine_is_served(secure):
    port, trusting, *_ = secure
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
    port, *_ = secure
    for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), ([], None)):
        trusting = _at_any_time()
        if offered:
            trusting.set_alpn_protocols(offered)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="x.localhost")
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
        writer.close()


async def test_other_names_get_no_certificate_and_the_authority_could_not_sign_one(secure):
    port, trusting, _, folder, _ = secure
    for name in ("example.com", "localhost.example.com", "xlocalhost"):
        with pytest.raises(ssl.SSLCertVerificationError):
            await certificate(port, name, trusting)
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    limits = authority.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert [str(each.value) for each in limits.value.permitted_subtrees or []] == [
        "localhost",
        "127.0.0.0/8",
        "::1/128",
    ]
    assert (folder / "authority.pem").stat().st_mode & 0o077 == 0


async def test_certificates_are_replaced_before_they_expire_and_the_authority_is_kept(aging):
    port, trusting, clock, folder, gateway = aging
    first = await certificate(port, "a.localhost", trusting)
    assert (await certificate(port, "a.localhost", trusting)).serial_number == first.serial_number
    clock.time += timedelta(days=25)
    await gateway.gateway.xds.renew()
    second = await certificate(port, "a.localhost", _at_any_time())
    assert second.not_valid_after_utc > first.not_valid_after_utc
    before = (folder / "ca.crt").read_bytes()
    Certificates(folder, clock.now)
    assert (folder / "ca.crt").read_bytes() == before
    clock.time += timedelta(days=3000)
    Certificates(folder, clock.now)
    assert (folder / "ca.crt").read_bytes() != before


def _at_any_time() -> ssl.SSLContext:
    """The clock of the client is the real one, for which a certificate may begin in the future."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_names_that_clients_make_up_are_forgotten(secure):
    port, _, _, _, gateway = secure
    context = _at_any_time()
    for number in range(300):
        await certificate(port, f"made-up-{number}.localhost", context)
    await gateway.gateway.xds.renew()
    assert len(gateway.gateway.xds.names(Secret)) <= 256
    await certificate(port, "made-up-0.localhost", context)


async def test_a_damaged_authority_is_made_anew(tmp_path: Path):
    clock = Clock()
    folder = tmp_path / "tls"
    Certificates(folder, clock.now)
    for damage in (b"", b"nonsense", (folder / "authority.pem").read_bytes()[:200]):
        (folder / "authority.pem").write_bytes(damage)
        assert Certificates(folder, clock.now).secret("localhost")


async def test_what_is_no_tls_ends_the_connection(secure):
    port, trusting, *_ = secure
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(60):
        assert not (await reader.read()).startswith(b"HTTP")
    writer.close()
    await certificate(port, "localhost", trusting)
