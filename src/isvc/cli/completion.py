"""`isvc completion`: the script that a shell reads to complete commands, options and the names of services."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes isvc's commands, and the names of services and namespaces, in a shell.

    \b
      bash: echo 'source <(isvc completion bash)' >> ~/.bashrc
      zsh:  echo 'source <(isvc completion zsh)' >> ~/.zshrc
      fish: isvc completion fish > ~/.config/fish/completions/isvc.fish
    """
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(ctx.find_root().command, {}, "isvc", "_ISVC_COMPLETE").source())
