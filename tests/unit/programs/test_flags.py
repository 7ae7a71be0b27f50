"""Flags and environment become options; nothing is started."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from isvc.programs import isvc_manager, llmisvc_manager, localmodel_manager, program
from isvc.programs.options import TLS, LLMOptions, Options
from isvc.toolkit.address import Address

ENVIRONMENT = (
    "POD_NAMESPACE",
    "LLM_INFERENCE_SERVICE_CONFIG_PREFIX",
    "PREVENT_WELL_KNOWN_CONFIG_DELETION",
    "KNATIVE_CONFIG_AUTOSCALER_NAMESPACE",
)


@pytest.fixture
def started(monkeypatch):
    """Starts a program with these arguments, and answers the options and log level it would have run with."""
    seen = []

    async def run(programs):
        options = tuple(programs.values())
        seen.append(options if len(options) > 1 else options[0])

    monkeypatch.setattr(program, "build_and_run", run)
    monkeypatch.setattr("isvc.toolkit.logs.set_up", seen.append)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)

    def start(*arguments, manager=isvc_manager):
        result = CliRunner().invoke(manager.main, list(arguments))
        assert result.exit_code == 0, result.output
        return seen[-1], seen[-2]

    return start


def test_flags_are_those_of_the_manager_it_stands_in_for(started):
    assert started() == (Options(), "info")
    assert started("--leader-elect")[0].leader_elect
    assert started("-leader-elect=true", "--webhook-port=1")[0].leader_elect
    assert not started("--leader-elect=false")[0].leader_elect
    options, level = started(
        "--metrics-addr=127.0.0.1:1", "-health-probe-addr", ":2", "--webhook-port=3", "--zap-log-level=debug"
    )
    assert (options.metrics, options.health_probes) == (Address("127.0.0.1", 1), Address("", 2))
    assert options.webhooks == Address("", 3)
    assert level == "debug"
    assert started("--zap-devel")[1] == "debug"
    assert started("--zap-log-level=warn", "--enable-http2=false")[1] == "warning"
    assert started("--kubeconfig=/some/file")[0].kubeconfig == "/some/file"
    assert started("--tls-cipher-suites=A, B", "--tls-min-version=VersionTLS12")[0].tls == TLS(
        "VersionTLS12", ("A", "B")
    )


def test_both_managers_in_one_process_share_all_but_addresses_and_certificates(started, monkeypatch):
    monkeypatch.setenv("LLM_INFERENCE_SERVICE_CONFIG_PREFIX", "team-")
    given = ("--with-llmisvc", "--leader-elect", "--webhook-cert-dir=/a", "--llmisvc-webhook-cert-dir=/b")
    (options, llmisvc), _ = started(*given, "--llmisvc-webhook-port=1", "--llmisvc-metrics-addr=127.0.0.1:2")
    assert options == replace(Options(), leader_elect=True, webhook_cert_dir=Path("/a"))
    assert llmisvc == replace(
        options,
        webhooks=Address("", 1),
        webhook_cert_dir=Path("/b"),
        health_probes=None,
        metrics=Address("127.0.0.1", 2),
        metrics_secure=True,
        llm=replace(LLMOptions(), preset_prefix="team-"),
    )


def test_the_manager_of_caches_in_the_same_process(started):
    given = ("--with-localmodel", "--webhook-cert-dir=/a", "--localmodel-metrics-addr=:8445")
    (options, localmodel), _ = started(*given)
    assert localmodel == replace(
        options,
        webhooks=Address("", 9445),
        webhook_cert_dir=None,
        health_probes=None,
        metrics=Address("", 8445),
        metrics_secure=True,
    )


def test_both_managers_act_in_the_same_namespaces(started, caplog):
    (options, llmisvc), _ = started("--with-llmisvc", "--namespaces=a,b")
    assert options.namespaces == llmisvc.namespaces == ("a", "b")
    alone, _ = started("--namespaces=a,b", manager=llmisvc_manager)
    assert alone.namespaces == ("a", "b")
    said = [record.getMessage() for record in caplog.records if record.name == llmisvc_manager.__name__]
    assert (
        said == ["acting on LLMInferenceServices in the namespaces a, b alone", *llmisvc_manager.WITHIN_NAMESPACES] * 2
    )


def test_flags_of_the_llm_manager(started):
    options, _ = started(manager=llmisvc_manager)
    assert (options.metrics, options.metrics_secure) == (Address("", 8443), True)
    assert options.llm == LLMOptions()
    options, _ = started(
        "--metrics-secure=false",
        "--storage-migration-timeout=1m30s",
        "--storage-migration-poll-interval=50ms",
        "--enable-http2",
        manager=llmisvc_manager,
    )
    assert not options.metrics_secure
    assert (options.llm.migration_timeout, options.llm.migration_poll_interval) == (90, 0.05)


def test_presets_are_chosen_by_the_environment(started, monkeypatch):
    monkeypatch.setenv("LLM_INFERENCE_SERVICE_CONFIG_PREFIX", "v1-")
    monkeypatch.setenv("PREVENT_WELL_KNOWN_CONFIG_DELETION", "F")
    options, _ = started(manager=llmisvc_manager)
    assert (options.llm.preset_prefix, options.llm.keep_presets) == ("v1-", False)


def test_the_namespace_is_the_pods(started, monkeypatch):
    monkeypatch.setenv("POD_NAMESPACE", "models")
    assert started()[0].system_namespace == "models"


def test_knatives_settings_may_be_in_another_namespace(started, monkeypatch):
    assert started()[0].knative_namespace == "knative-serving"
    monkeypatch.setenv("KNATIVE_CONFIG_AUTOSCALER_NAMESPACE", "elsewhere")
    assert started()[0].knative_namespace == "elsewhere"


@pytest.mark.parametrize("flag", ["--metrics-addr=localhost", "--webhook-port=x"])
def test_what_is_no_address_is_refused(flag):
    result = CliRunner().invoke(isvc_manager.main, [flag])
    assert result.exit_code == 2
    assert flag.partition("=")[0] in result.output


@pytest.mark.parametrize("manager", [isvc_manager, llmisvc_manager, localmodel_manager])
def test_the_cluster_is_that_of_the_flag(manager, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))
    monkeypatch.setattr("isvc.toolkit.logs.set_up", lambda level: None)
    result = CliRunner().invoke(manager.main, [f"--kubeconfig={tmp_path / 'asked-for'}"])
    assert result.exit_code == 1
    assert "asked-for" in caplog.messages[-1]


@pytest.mark.parametrize("text", ["", "1", "h", "1h-", "1d"])
def test_what_is_no_duration_is_refused(text):
    result = CliRunner().invoke(llmisvc_manager.main, [f"--storage-migration-timeout={text}"])
    assert result.exit_code == 2
    assert "no duration" in result.output
