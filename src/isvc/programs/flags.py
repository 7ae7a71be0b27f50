"""Command-line flags of the managers, written as Go programs take them: `-name`, `--name=true`, `1h30m`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from isvc.kube import durations
from isvc.programs.options import TLS, Options, knative_namespace, system_namespace
from isvc.toolkit.address import Address
from isvc.toolkit.failure import ClusterError, ConfigError
from isvc.toolkit.tracing import Collector

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

SWITCH: Final[dict[str, Any]] = {"is_flag": False, "flag_value": "true", "type": bool}
"""A flag that may stand alone or be given a value: `--leader-elect`, `--leader-elect=false`."""


class GoCommand(click.Command):
    """A command that takes one dash for two, as Go programs do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f"-{each}" if len(each) > 2 and each[0] == "-" and each[1].isalpha() else each for each in args]
        )


def add_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Returns what gives a command these options, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def address(text: str) -> Address | None:
    try:
        return Address.parse(text)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None


def names(text: str) -> tuple[str, ...]:
    """Returns the parts of `a,b`, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def duration(text: str) -> float:
    """Returns the seconds of `1h` or `1m30s`."""
    seconds = durations.seconds(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is no duration: write 30s, 5m or 1h30m")
    return seconds


def shared_flags(defaults: Options) -> Callable[[F], F]:
    """Returns the flags that all managers have."""
    options = (
        click.option("--metrics-addr", type=address, default=str(defaults.metrics), show_default=True,
                     help="Where metrics are served; 0 for nowhere."),
        click.option("--health-probe-addr", type=address, default=str(defaults.health_probes), show_default=True,
                     help="Where /healthz and /readyz are served; 0 for nowhere."),
        click.option("--webhook-port", default=defaults.webhooks.port, show_default=True,
                     help="The port of the webhooks."),
        click.option("--webhook-cert-dir", default="",
                     help="Folder with tls.crt and tls.key; issued by the manager when left out."),
        click.option("--webhook-client-ca-file", default="",
                     help="Admit for API servers alone that show a certificate of this authority."),
        click.option("--webhook-client-names", type=names, default="",
                     help="Common names of which that certificate has to have one, separated by commas."),
        click.option("--leader-elect", default=defaults.leader_elect, help="Act only while holding the lease.",
                     **SWITCH),
        click.option("--shutdown-delay-duration", type=duration, default="0s", show_default=True,
                     help="How long webhooks still answer after SIGTERM, until no API server asks any more."),
        click.option("--namespaces", type=names, default="",
                     help="Act in these namespaces alone, with no rights beyond them."),
        click.option("--revision-history-limit", default=defaults.revision_history_limit, show_default=True,
                     type=click.IntRange(0, 1000), help="Earlier specs to keep of each service; 0 for none."),
        click.option("--tls-min-version", default="", help="VersionTLS12 (default) or VersionTLS13."),
        click.option("--tls-cipher-suites", default="", help="Cipher suites by their Go names, separated by commas."),
        click.option("--zap-log-level", default="info", help="debug, info, warn or error."),
        click.option("--kubeconfig", default="", help="The cluster, in the place of KUBECONFIG."),
        click.option("--enable-http2", default=False, hidden=True, **SWITCH),
        click.option("--zap-devel", default=False, hidden=True, **SWITCH),
        click.option("--zap-encoder", default="", hidden=True),
        click.option("--zap-stacktrace-level", default="", hidden=True),
        click.option("--zap-time-encoding", default="", hidden=True),
    )  # fmt: skip
    return add_options(options)


def options_from(defaults: Options, flags: dict[str, Any]) -> Options:
    """Returns the options that the shared flags and the environment choose."""
    suites = tuple(suite.strip() for suite in flags["tls_cipher_suites"].split(",") if suite.strip())
    return replace(
        defaults,
        metrics=flags["metrics_addr"],
        health_probes=flags["health_probe_addr"],
        webhooks=defaults.webhooks._replace(port=flags["webhook_port"]),
        webhook_cert_dir=Path(flags["webhook_cert_dir"]) if flags["webhook_cert_dir"] else None,
        webhook_client_ca=Path(flags["webhook_client_ca_file"]) if flags["webhook_client_ca_file"] else None,
        webhook_client_names=flags["webhook_client_names"],
        kubeconfig=flags["kubeconfig"] or None,
        leader_elect=flags["leader_elect"],
        shutdown_delay=flags["shutdown_delay_duration"],
        revision_history_limit=flags["revision_history_limit"],
        tls=TLS(flags["tls_min_version"].strip(), suites),
        system_namespace=system_namespace(os.environ),
        knative_namespace=knative_namespace(os.environ),
        namespaces=flags["namespaces"],
        traces=Collector.of_environment(os.environ),
    )


def log_level(flags: dict[str, Any]) -> str:
    level: str = "debug" if flags["zap_devel"] else flags["zap_log_level"]
    return {"warn": "warning"}.get(level, level if level in ("debug", "error") else "info")


def go_bool(text: str) -> bool:
    """Reads text as Go's ParseBool does, with False for what it does not understand."""
    return text in ("1", "t", "T", "true", "TRUE", "True")


def run_or_exit(program: str, main: Coroutine[Any, Any, None]) -> None:
    """Runs to the end; what keeps it from running is the last line of the log."""
    from isvc.wire import event_loop  # which other users of this module do without

    try:
        event_loop.run(main)
    except ClusterError as error:
        log.error("%s ends: %s", program, error)
        sys.exit(1)
