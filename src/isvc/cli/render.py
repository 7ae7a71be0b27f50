"""`isvc render`: every child that documents would get, with no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from isvc.cli.output import JSON, NAME, YAML, output_option, print_objects, print_remarks

if TYPE_CHECKING:
    from isvc.kube.objects import Object

REFUSED, UNREADABLE = 1, 2


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="File, folder, or - for stdin."
)
@click.option(
    "--with", "extra", multiple=True, metavar="FILE", help="Further objects of the cluster: runtimes, secrets."
)
@click.option("--config", metavar="FILE", help="The ConfigMap inferenceservice-config.  [default: that of `isvc up`]")
@click.option(
    "--mode", default="", metavar="MODE", help="Deployment mode of services that name none: Standard, Knative."
)
@click.option("-n", "--namespace", default="default", help="Namespace of documents that name none.", show_default=True)
@click.option("--without", multiple=True, metavar="CRD", help="A CRD that the cluster lacks: scaledobjects.keda.sh")
@click.option("--no-shipped", is_flag=True, help="Leave out the runtimes and presets that an installation brings.")
@click.option("--as-stored", is_flag=True, help="Print objects as an API server stores them: with defaults and owners.")
@click.option("--pods", is_flag=True, help="Print the pods of workloads, too, as the webhook leaves them.")
@output_option(YAML, JSON, NAME)
def command(files: tuple[str, ...], no_shipped: bool, as_stored: bool, output: str | None, **flags: Any) -> None:
    """Print every child that InferenceServices, LLMInferenceServices, InferenceGraphs and TrainedModels would get.

    The documents pass admission, and the controllers plan them as on a cluster where all becomes ready. Exits with 1 if
    a document is refused or cannot be served, with 2 if one cannot be read. Warnings say what was assumed.
    """
    from isvc.insight.rendering import DocumentError, render

    try:
        rendering = render(*files, shipped=not no_shipped, **flags)
    except DocumentError as error:
        print_remarks((), [error])
        raise click.exceptions.Exit(UNREADABLE) from None
    _print([child.stored if as_stored else child.manifest for child in rendering.children], output or YAML)
    print_remarks(rendering.warnings, rendering.problems)
    if rendering.problems:
        raise click.exceptions.Exit(REFUSED)


def _print(objects: list[Object], form: str) -> None:
    """Prints YAML as documents, one after another, which reads better than a List."""
    if form != YAML:
        print_objects(objects, form)
        return
    from isvc.kube.go_yaml import dump

    for obj in objects:
        click.echo("---\n" + dump(obj), nl=False)
