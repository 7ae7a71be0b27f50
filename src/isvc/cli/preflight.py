"""`isvc preflight`: what of a cluster is missing, too old or in the way, before installing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.output import JSON, YAML, output_option, print_remarks, print_value
from isvc.serving.environment import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from isvc.insight.preflight.finding import Finding
    from isvc.insight.rendering.differences import Differences
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "error": ("✗", "red")}


@click.command()
@cluster_options(namespace_help="Namespace to install into.  [default: kserve]")
@click.option("--takeover", is_flag=True, help="Show what would change for the services that another manager made.")
@output_option(JSON, YAML)
def command(cluster: Cluster, takeover: bool, output: str | None) -> None:
    """Check a cluster before a manager is installed: versions, kinds, other managers, webhooks, permissions.

    The cluster is read and not written to. Exits with 1 if something would keep a manager from working, or if
    --takeover finds pods that would restart.
    """
    from isvc.insight.preflight.checks import preflight
    from isvc.insight.preflight.finding import Level
    from isvc.insight.rendering.differences import Differences

    findings = cluster.run(lambda client: preflight(client, cluster.namespace or SYSTEM_NAMESPACE))
    compared = _take_over(cluster) if takeover else None
    if output:
        found = [finding._asdict() for finding in findings]
        print_value(found if compared is None else {"findings": found, **_plan(compared)}, output)
    else:
        for finding in findings:
            _print(finding)
        if compared is not None:
            _print_plan(compared)
    restarts = compared is not None and Differences(found=compared.pending).restarts
    if restarts or any(finding.level is Level.ERROR for finding in findings):
        raise click.exceptions.Exit(1)


def _take_over(cluster: Cluster) -> Differences:
    """Compares what the managers would write with what there is.

    `pending` are the children that they would write if they started now, `found` those that would be others, too, if
    the configuration named the chart's programs in pods.
    """
    compared = cluster.run(lambda client: _compare_with_programs(client, cluster.namespace or SYSTEM_NAMESPACE))
    print_remarks(compared.warnings, ())
    return compared


def _plan(compared: Differences) -> Object:
    from isvc.cli.diff import values_of
    from isvc.insight.rendering.differences import Differences

    return {"takeover": [*values_of(Differences(found=compared.pending))], "withPodPrograms": [*values_of(compared)]}


def _print_plan(compared: Differences) -> None:
    from isvc.cli.diff import print_differences
    from isvc.insight.rendering.differences import Differences
    from isvc.insight.rendering.text import summary

    print_differences(Differences(found=compared.pending), brief=True)
    click.echo(f"with the agent, router and storage initializer of isvc (podPrograms): {summary(compared)}")


async def _compare_with_programs(client: Client, namespace: str) -> Differences:
    """Compares with what the chart would write of programs in pods: images in the ConfigMap, a storage container."""
    from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS
    from isvc.cli import chart
    from isvc.insight.preflight.pod_programs import with_programs_of
    from isvc.insight.rendering.differences import compare
    from isvc.insight.rendering.documents import Document
    from isvc.kube.errors import Forbidden, NotFound
    from isvc.kube.objects import name_of
    from isvc.kube.resource import CONFIG_MAPS
    from isvc.programs.options import Options
    from isvc.serving.config import CONFIG_MAP

    rendered = chart.render(namespace, {})
    [config] = [each for each in rendered if name_of(each) == CONFIG_MAP]
    documents = [each for each in rendered if each["kind"] == CLUSTER_STORAGE_CONTAINERS.kind]
    try:
        live = await client.get(CONFIG_MAPS, CONFIG_MAP, namespace)
        documents.append(with_programs_of(config["data"], CONFIG_MAPS.typed(live)))
    except (NotFound, Forbidden):
        pass  # a finding of its own
    options = Options(system_namespace=namespace)
    return await compare(client, [Document(each, "chart") for each in documents], options)


def _print(finding: Finding) -> None:
    from isvc.kube.masking import plain_text

    mark, colour = _MARKS[finding.level]
    click.echo(f"{click.style(mark, colour)} {finding.check}: {plain_text(finding.message)}")
    if finding.remedy:
        click.echo(f"    {plain_text(finding.remedy)}")
