"""`isvc runtime`: environments of their own for model servers that need other packages than isvc."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.group()
def command() -> None:
    """Run your own model servers on `isvc up`, such as those written for KServe's `kserve` package, each in a virtual
    environment with the packages that it requires."""


@command.command()
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "-r",
    "--requirements",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the packages to install, as pip reads it. May be given several times. Only `pytorch` has packages "
    "of its own, for which a file may name another version or index.",
)
@click.option("--image", default="", help="Image whose pods run in the environment.  [default: NAME]")
@click.option("--python", default=sys.executable, help="Interpreter of the environment.  [default: that of isvc]")
def add(name: str, words: tuple[str, ...], requirements: tuple[Path, ...], image: str, python: str) -> None:
    """Make the environment NAME and have pods of an image run in it.

    COMMAND takes the place of the image's entry point, and the pod's args follow it; {port} in it is the pod's port.
    Without it, the pod has to give a command. `python` is that of the environment in both.

    \b
        isvc runtime add my-model -r requirements.txt -- python /home/me/model.py

    `isvc runtime add pytorch` brings PyTorch, with which models in TorchScript run.
    """
    from isvc.local import runtimes
    from isvc.local.home import Home

    home = Home.default()
    is_recipe = name in runtimes.RECIPES and not words and not image
    if not (is_recipe or requirements):
        raise click.UsageError("the packages are missing: give a file with --requirements")
    try:
        home.prepare()
        if is_recipe:
            made = runtimes.add_recipe(home.runtimes, name, requirements)
        else:
            made = runtimes.add(home.runtimes, name, requirements, image=image, command=words, python=python)
    except OSError as error:
        raise click.ClickException(f"cannot keep files in {home.root}: {error.strerror or error}") from None
    click.echo(f"pods of the image {made.image} run with {made.python}")


@command.command("list")
def list_() -> None:
    """List the environments and their images."""
    from isvc.cli.output import print_table
    from isvc.local import runtimes
    from isvc.local.home import Home

    found = list(runtimes.environments(Home.default().runtimes))
    rows = [(each.name, each.image, " ".join(each.command) or "the pod's own") for each in found]
    if rows:
        print_table(("NAME", "IMAGE", "COMMAND"), rows)
    else:
        click.echo("there are no runtimes of your own")


@command.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the environment NAME. Pods that run in it go on until they end."""
    from isvc.local import runtimes
    from isvc.local.home import Home

    runtimes.remove(Home.default().runtimes, name)
    click.echo(f"removed {name}")
