"""Which cluster and namespace a command works on: kubectl's flags and files, else the `isvc up` that runs here."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from isvc.toolkit.client import Client
    from isvc.toolkit.client.kubeconfig import ClusterConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the flags say; nothing is read before it is asked for."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False

    def config(self) -> ClusterConfig:
        """Finds the cluster as kubectl does. Where nothing is configured, it is the `isvc up` that runs here."""
        from isvc.toolkit.client import kubeconfig

        path = self.kubeconfig or (_running_here() if self._is_unconfigured() else "")
        return kubeconfig.load(path or None, self.context or None)

    def connect(self) -> Client:
        from isvc.toolkit.client import Client

        return Client.connect(self.config())

    def scope(self, client: Client) -> str:
        """Returns the namespace to look into: the one asked for, else the context's; empty for all of them."""
        return "" if self.all_namespaces else self.namespace or client.config.namespace

    def scope_of_names(self, client: Client) -> str:
        """Returns the namespace in which services are called by name."""
        if self.all_namespaces:
            raise click.UsageError("a service cannot be named across all namespaces; say -n instead of -A")
        return self.scope(client)

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Runs `work` with a connected client, to its end or to Ctrl-C."""

        async def connect_and_work() -> T:
            async with self.connect() as client:
                return await work(client)

        return asyncio.run(connect_and_work())

    def _is_unconfigured(self) -> bool:
        return not (
            self.context
            or os.environ.get("KUBECONFIG")
            or os.environ.get("KUBERNETES_SERVICE_HOST")
            or (Path.home() / ".kube" / "config").exists()
        )


def cluster_options(
    *, all_namespaces: bool = False, namespace_help: str = "Namespace.  [default: the context's]"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds --kubeconfig, --context, -n and, if asked for, -A; the command gets them as its argument `cluster`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call_with_cluster(
            kubeconfig: str, context: str, namespace: str, all_namespaces: bool = False, **rest: Any
        ) -> Any:
            return function(cluster=Cluster(kubeconfig, context, namespace, all_namespaces), **rest)

        options = [
            click.option("-n", "--namespace", default="", shell_complete=_namespaces, help=namespace_help),
            click.option("--context", default="", help="Context of the kubeconfig.  [default: the current one]"),
            click.option("--kubeconfig", default="", metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config."),
        ]
        if all_namespaces:
            options.insert(1, click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces."))
        for option in reversed(options):
            call_with_cluster = option(call_with_cluster)
        return call_with_cluster

    return decorate


def _namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from isvc.cli.complete import complete_namespaces

    return complete_namespaces(ctx, param, incomplete)


def _running_here() -> str:
    from isvc.local.home import Home

    running = Home.default().find_running()
    return running.kubeconfig if running else ""
