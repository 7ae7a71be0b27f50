import ssl

import pytest
from click.testing import CliRunner

from isvc.cli import manager
from isvc.cli.manager import Options
from isvc.toolkit.failure import ClusterError


@pytest.fixture
def started(monkeypatch):
    """Starts the program with these arguments, and tells with which options it would have run."""
    seen = []

    async def run(options):
        seen.append(options)

    monkeypatch.setattr(manager, "run", run)
    monkeypatch.setattr("isvc.toolkit.logs.set_up", lambda level: None)

    def start(*arguments):
        result = CliRunner().invoke(manager.command, manager._go_flags(list(arguments)))
        assert result.exit_code == 0, result.output
        return seen[-1]

    return start


def test_flags_are_those_of_the_manager_it_stands_in_for(started, monkeypatch):
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert started() == Options()
    assert started("--leader-elect").leader_elect
    assert started("-leader-elect=true", "--webhook-port=1").leader_elect
    assert not started("--leader-elect=false").leader_elect
    options = started("--metrics-addr=127.0.0.1:1", "-health-probe-addr", ":2", "--zap-log-level=debug", "--zap-devel")
    assert (options.metrics_addr, options.health_probe_addr, options.log_level) == ("127.0.0.1:1", ":2", "debug")


def test_the_namespace_is_the_pods(started, monkeypatch):
    monkeypatch.setenv("POD_NAMESPACE", "models")
    assert started().namespace == "models"


@pytest.mark.parametrize(("address", "port"), [(":8080", 8080), ("127.0.0.1:9", 9), ("0", None), (":0", None)])
def test_addresses(address, port):
    assert manager._port(address) == port


def test_an_address_without_a_port_is_refused():
    with pytest.raises(ClusterError, match="no address"):
        manager._port("localhost")


def test_tls_versions_and_ciphers():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    manager._restrict(context, Options(tls_min_version="VersionTLS13"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    manager._restrict(context, Options(tls_cipher_suites="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"))
    names = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256"}


@pytest.mark.parametrize(
    "options",
    [
        Options(tls_min_version="VersionTLS10"),
        Options(tls_cipher_suites="NO_SUCH_SUITE"),
        Options(tls_min_version="VersionTLS13", tls_cipher_suites="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ],
)
def test_what_tls_cannot_do_is_refused(options):
    with pytest.raises(ClusterError, match="--tls"):
        manager._restrict(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), options)
