"""`isvc envtest`: the embedded API server for the test suites of other controllers."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write FOLDER, to be given as KUBEBUILDER_ASSETS: programs named etcd and kube-apiserver that start the embedded
    API server with envtest's flags and certificates, so that a controller-runtime suite runs on it unchanged.

    \b
        export KUBEBUILDER_ASSETS=$(isvc envtest ~/.cache/isvc/assets) && go test ./...
    """
    from isvc.apiserver.kube_apiserver import write_assets

    try:
        write_assets(folder)
    except OSError as error:
        raise click.ClickException(f"cannot write {folder}: {error.strerror}") from None
    click.echo(folder.resolve())
