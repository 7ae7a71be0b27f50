"""`isvc manifests`: what a cluster needs to run the managers, as plain YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isvc.serving.environment import SYSTEM_NAMESPACE


@click.command()
@click.option("-n", "--namespace", default=SYSTEM_NAMESPACE, show_default=True, help="The namespace of the managers.")
@click.option("--crds", "kinds", is_flag=True, help="Print the kinds instead, with the values of the chart isvc-crds.")
@click.option(
    "-f",
    "--values",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file with values of the chart; can be given more than once.",
)
@click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True, help="One value of the chart: manager.replicas=2."
)
def command(namespace: str, kinds: bool, values: tuple[Path, ...], settings: tuple[str, ...]) -> None:
    """Print the manifests of the managers: those of the Helm chart `charts/isvc`, with the same values.

    \b
        isvc manifests --crds | kubectl apply --server-side -f -
        isvc manifests --set webhooks.enabled=true | kubectl apply --server-side -f -
    """
    import yaml

    from isvc.cli import chart
    from isvc.kube.go_yaml import dump
    from isvc.local.install.third_party import inference_extension_crds
    from isvc.programs import cluster_manifests

    chosen: dict[str, Any] = {}
    for each in (*(yaml.safe_load(path.read_text()) for path in values), *map(_setting, settings)):
        chosen = chart.merge_values(chosen, each or {})
    if kinds:
        minimal, extension = (chosen.pop(name, False) is True for name in ("minimal", "inferenceExtension"))
        certificates = chart.complete_values(chosen)["certificates"]
        certificate = "llmisvc-serving-cert" if certificates["source"] == "cert-manager" else ""
        objects = cluster_manifests.kinds(
            namespace,
            certificate=certificate,
            authority=certificates["caBundle"],
            minimal=minimal,
            others=inference_extension_crds() if extension else (),
        )
    else:
        objects = chart.render(namespace, chosen)
    click.echo(dump(*objects), nl=False)


def _setting(text: str) -> dict[str, Any]:
    """`a.b=1` → {"a": {"b": 1}}"""
    import yaml

    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
    chosen: Any = yaml.safe_load(value) if value else ""
    for part in reversed(key.split(".")):
        chosen = {part: chosen}
    return dict(chosen)
