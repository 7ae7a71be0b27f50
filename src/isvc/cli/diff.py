"""`isvc diff`: what controllers would change on a cluster if documents were applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.output import JSON, NAME, YAML, output_option, print_remarks, print_value
from isvc.serving.environment import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from isvc.insight.rendering.differences import Difference, Differences
    from isvc.kube.objects import Object

DIFFERENT, FAILED = 1, 2
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="File, folder, or - for stdin."
)
@cluster_options()
@click.option(
    "--system-namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Where the configuration and presets are."
)
@click.option(
    "--summary", "brief", is_flag=True, help="List the services and children that would change, without the changes."
)
@output_option(JSON, YAML, NAME)
def command(cluster: Cluster, files: tuple[str, ...], system_namespace: str, brief: bool, output: str | None) -> None:
    """Show what would change on the cluster if documents were applied, child by child, and which pods would restart.

    A changed ServingRuntime, ClusterServingRuntime, ClusterStorageContainer, LLMInferenceServiceConfig or ConfigMap
    inferenceservice-config shows all services that it would change, and whose pods would be made differently when they
    are replaced. The cluster is read and not written to. Exits with 0 if nothing would change, with 1 if something
    would, with 2 on errors.
    """
    try:
        differences = _compare(cluster, files, system_namespace)
    except Exception as error:
        print_remarks((), [_sentence(error)])
        raise click.exceptions.Exit(FAILED) from None
    if output:
        _print_values(differences, output)
    else:
        print_differences(differences, brief=brief)
    print_remarks(differences.warnings, differences.problems)
    if differences.problems:
        raise click.exceptions.Exit(FAILED)
    if differences.found:
        raise click.exceptions.Exit(DIFFERENT)


def _compare(cluster: Cluster, files: tuple[str, ...], system_namespace: str) -> Differences:
    from isvc.insight.rendering.differences import compare
    from isvc.insight.rendering.documents import load
    from isvc.insight.rendering.placing import place
    from isvc.programs.options import Options

    documents = load(*files)
    options = Options(system_namespace=system_namespace)
    return cluster.run(
        lambda client: compare(client, [place(each, cluster.scope(client), options) for each in documents], options)
    )


def _sentence(error: Exception) -> str:
    from isvc.cli.failures import describe_error
    from isvc.insight.rendering.documents import DocumentError

    said = str(error) if isinstance(error, DocumentError) else describe_error(error)
    if not said:
        raise error
    return said


def print_differences(differences: Differences, *, brief: bool) -> None:
    from isvc.insight.rendering.text import heading, summary, title, unified_diff

    for owner, children in differences.by_owner().items():
        click.secho(title(owner), bold=True)
        for child in children:
            click.echo(f"  {heading(child)}")
            for line in () if brief else unified_diff(child):
                click.secho(line, fg=_COLOURS.get(line[:1]))
    if differences.found or not differences.problems:
        click.echo(summary(differences))
    if differences.pending:
        click.echo(f"({len(differences.pending)} children differ already; the controller would write them anyway)")


def _print_values(differences: Differences, form: str) -> None:
    from isvc.insight.rendering.text import title

    if form == NAME:
        for owner in differences.by_owner():
            click.echo(title(owner))
    else:
        print_value([*values_of(differences)], form)


def values_of(differences: Differences) -> Iterator[Object]:
    """Yields each service that would change, with its children, for machines to read."""
    for owner, children in differences.by_owner().items():
        resource, namespace, name = owner
        yield {
            "kind": resource.kind,
            "namespace": namespace,
            "name": name,
            "podsToRestart": sum(child.restarts for child in children),
            "children": [_value(child) for child in children],
        }


def _value(child: Difference) -> Object:
    from isvc.insight.rendering.text import unified_diff

    return {
        "kind": child.resource.kind,
        "name": child.name,
        "change": "when replaced" if child.later else child.verb,
        "podsToRestart": child.restarts,
        "diff": "\n".join(unified_diff(child)),
    }
