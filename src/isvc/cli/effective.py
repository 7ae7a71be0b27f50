"""`isvc effective`: what a service runs with once everything is merged, and where each field comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.output import JSON, YAML, output_option, print_table, print_value
from isvc.serving.environment import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from isvc.insight.rendering.sources import Field
    from isvc.toolkit.client import Client

_WIDEST = 60
_COLOURS = {"service": "green", "default": "bright_black", "controller": "bright_black"}


@click.command()
@click.argument("name", shell_complete=complete_services)
@cluster_options()
@click.option(
    "--system-namespace", default=SYSTEM_NAMESPACE, show_default=True, help="Where the configuration and presets are."
)
@output_option(JSON, YAML)
def command(cluster: Cluster, name: str, system_namespace: str, output: str | None) -> None:
    """Show what a service runs with once service, runtime or presets, and configuration are merged.

    Each field is shown with its source: the service itself, a runtime, a preset or another configuration it refers to,
    the ConfigMap, the controller, or a default of Kubernetes. The cluster is read and not written to.
    """
    from isvc.kube.masking import mask_field

    found = cluster.run(lambda client: _fields(client, name, cluster.scope(client), system_namespace))
    if output:
        print_value([field._asdict() for field in found], output)
        return
    shown = [mask_field(field._asdict()) for field in found]
    rows = [[each["path"], _short(each["value"]), each["source"]] for each in shown]
    print_table(["FIELD", "VALUE", "SOURCE"], rows, SOURCE=_colour)


async def _fields(client: Client, name: str, namespace: str, system_namespace: str) -> list[Field]:
    from isvc.insight.operations import kinds
    from isvc.insight.rendering.effective import MERGED, effective
    from isvc.programs.options import Options
    from isvc.serving.refused import Refused

    resource, service = await kinds.find(client, name, namespace)
    if resource not in MERGED:
        raise click.ClickException(f"nothing is merged for a {resource.kind}")
    try:
        return await effective(client, resource, service, Options(system_namespace=system_namespace))
    except Refused as error:
        raise click.ClickException(error.message) from None


def _short(value: object) -> str:
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _colour(source: str) -> str | None:
    return _COLOURS.get(source.partition(" ")[0], "cyan")
