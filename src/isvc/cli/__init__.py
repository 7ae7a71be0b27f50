"""`isvc`: what people type. Each command is a module that is imported when it is run, so the others cost nothing."""

from __future__ import annotations

from importlib import import_module

import click

#: command -> (module, what it does)
COMMANDS = {
    "up": ("isvc.cli.up", "Start everything on this machine: API server, controllers, node, gateway."),
    "down": ("isvc.cli.down", "Stop what `isvc up` started."),
    "status": ("isvc.cli.status", "Show whether isvc runs here, and its services."),
    "apiserver": ("isvc.cli.apiserver", "Run the embedded Kubernetes API server alone, in the foreground."),
    "envtest": ("isvc.cli.envtest", "Write the assets that run controller-runtime's test suites on it."),
}


class LazyGroup(click.Group):
    """Loads `isvc.cli.NAME:command` on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="isvc")
def main() -> None:
    """KServe's control plane, on a cluster or on this machine."""
