"""`isvc get`: services of all kinds in one list, with the reason of each that is not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.output import WIDE, output_option, print_objects, print_table

if TYPE_CHECKING:
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client

_COLOURS = {"True": "green", "False": "red", "Unknown": "yellow"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_services)
@cluster_options(all_namespaces=True)
@output_option()
def command(cluster: Cluster, names: tuple[str, ...], output: str | None) -> None:
    """List InferenceServices, LLMInferenceServices, InferenceGraphs, TrainedModels and caches of models.

    A NAME may be a kind (isvc, llmisvc, ig, tm, lmc, lmnc), a service, or both: llmisvc/chat.
    """
    objects = cluster.run(lambda client: _objects(client, cluster, names))
    if output and output != WIDE:
        print_objects(objects, output)
    elif objects:
        _print(objects, namespaces=cluster.all_namespaces, wide=output == WIDE)
    else:
        click.echo("no services found", err=True)


async def _objects(client: Client, cluster: Cluster, names: tuple[str, ...]) -> list[Object]:
    from isvc.insight.operations import kinds

    resources = tuple(resource for name in names if (resource := kinds.resource_called(name)))
    services = [name for name in names if not kinds.resource_called(name)]
    namespace = cluster.scope_of_names(client) if services else cluster.scope(client)
    objects = await kinds.list_all(client, namespace, resources) if resources or not names else []
    return objects + [(await kinds.find(client, name, namespace))[1] for name in services]


def _print(objects: list[Object], *, namespaces: bool, wide: bool) -> None:
    header = [*(["NAMESPACE"] if namespaces else []), "KIND", "NAME", "READY", "REASON", "AGE", "URL"]
    rows = [_row(each, namespaces=namespaces, wide=wide) for each in objects]
    print_table([*header, *(["MESSAGE"] if wide else [])], rows, READY=_COLOURS.get)


def _row(obj: Object, *, namespaces: bool, wide: bool) -> list[str]:
    from isvc.apiserver.tables.columns import age
    from isvc.kube.objects import dig, name_of, namespace_of
    from isvc.kube.readiness import readiness

    ready = readiness(obj)
    row = [namespace_of(obj)] if namespaces else []
    row += [str(obj["kind"]), name_of(obj), str(ready["status"]), str(ready.get("reason") or "")]
    row += [age(obj), str(dig(obj, "status", "url") or "")]
    return [*row, str(ready.get("message") or "")] if wide else row
