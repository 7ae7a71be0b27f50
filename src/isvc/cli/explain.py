"""`isvc explain`: why a service is not ready, from the condition down to the container, and what would mend it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.output import JSON, YAML, output_option, print_value
from isvc.cli.progress import Progress

if TYPE_CHECKING:
    from isvc.insight.diagnosis.finding import Finding
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client

NOT_READY = 1


@click.command()
@click.argument("name", required=False, shell_complete=complete_services)
@cluster_options(all_namespaces=True)
@click.option("--system-namespace", default="", help="Where the configuration and presets are.  [default: looked for]")
@output_option(JSON, YAML)
def command(cluster: Cluster, name: str | None, system_namespace: str, output: str | None) -> None:
    """Say why a service is not ready, or what is odd about one that is.

    NAME is an InferenceService, LLMInferenceService, InferenceGraph or TrainedModel; llmisvc/NAME says which. Without a
    name, all services that are not ready are explained, with -A those of all namespaces.

    The first line is the root cause. Exits with 1 if a service is not ready.
    """
    from isvc.kube.readiness import is_ready

    with Progress("looking at children, pods and events"):
        explained, looked_at = cluster.run(lambda client: _explain(client, cluster, name, system_namespace))
    if output:
        print_value([_value(service, findings) for service, findings in explained], output)
    elif not explained:
        click.echo("every service is ready" if looked_at else "no services found", err=not looked_at)
    for service, findings in [] if output else explained:
        click.echo("\n".join(describe(service, findings)))
    if any(not is_ready(service) for service, _ in explained):
        sys.exit(NOT_READY)


async def _explain(
    client: Client, cluster: Cluster, name: str | None, system: str
) -> tuple[list[tuple[Object, list[Finding]]], int]:
    """Returns the named service, or all that are not ready, with their findings; and how many were looked at."""
    from isvc.insight.operations import kinds
    from isvc.kube.readiness import is_ready

    if name is not None:
        _, service = await kinds.find(client, name, cluster.scope_of_names(client))
        return await examine_all(client, [service], system), 1
    services = await kinds.list_all(client, cluster.scope(client))
    unready = [each for each in services if not is_ready(each)]
    return await examine_all(client, unready, system), len(services)


async def examine_all(
    client: Client, services: Sequence[Object], system: str = ""
) -> list[tuple[Object, list[Finding]]]:
    """Returns services with what is found out about them; their namespaces are read once each."""
    from isvc.insight.diagnosis.gather import examine
    from isvc.insight.diagnosis.snapshot import take
    from isvc.kube.objects import namespace_of

    snapshots = {place: await take(client, place, system) for place in sorted(set(map(namespace_of, services)))}
    return [(each, await examine(client, each, snapshots[namespace_of(each)])) for each in services]


def describe(service: Object, findings: list[Finding]) -> Iterator[str]:
    """Yields the findings as people read them; the first line says what is wrong."""
    yield headline(service, findings)
    for index, finding in enumerate(findings):
        if index:
            yield f"also: {finding.message}"
        for depth, link in enumerate(finding.chain):
            yield f"  {'   ' * (depth - 1)}{'└─ ' if depth else ''}{link}"
        if finding.log and finding.place is not None:
            yield click.style(f"  last lines of {finding.place.container}:", dim=True)
            yield from (click.style(f"    {line}", dim=True) for line in finding.log)
        if finding.remedy:
            yield f"  {click.style('to mend it:', fg='green')} {finding.remedy}"


def headline(service: Object, findings: list[Finding]) -> str:
    """Returns a service and the first of its findings, on one line."""
    from isvc.insight.diagnosis.finding import Level
    from isvc.kube.objects import Key
    from isvc.kube.readiness import is_ready, readiness

    subject = f"{service['kind']} {Key.of(service)}"
    if not findings:
        if not is_ready(service):
            return f"{subject} is not ready, and nothing says why"
        said = readiness(service).get("message")  # such as that it sleeps
        return f"{subject} is ready: {said}" if said else f"{subject} is ready"
    first = findings[0]
    if is_ready(service):
        return f"{subject} is ready, but {click.style(first.message, fg='yellow')}"
    if first.level is Level.BLOCKS:
        return f"{subject} is not ready: {click.style(first.message, fg='red')}"
    return f"{subject} is not ready yet: {click.style(first.message, fg='yellow')}"


def _value(service: Object, findings: list[Finding]) -> Object:
    from dataclasses import asdict

    from isvc.kube.objects import name_of, namespace_of
    from isvc.kube.readiness import is_ready

    values = [{key: value for key, value in asdict(each).items() if value and key != "place"} for each in findings]
    return {
        "kind": service["kind"],
        "namespace": namespace_of(service),
        "name": name_of(service),
        "ready": is_ready(service),
        "findings": [{**value, "level": str(value["level"])} for value in values],
    }
