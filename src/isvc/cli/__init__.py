"""`isvc`: what people type. Each command is a module that is imported when it is run, so the others cost nothing.

Installed as `kubectl-isvc`, too, which kubectl runs for `kubectl isvc`.
"""

from __future__ import annotations

import errno
import os
from importlib import import_module
from typing import Any, Final

import click

#: command -> (module, what it does)
COMMANDS: Final = {
    "up": ("isvc.cli.up", "Start everything on this machine: API server, controllers, node, gateway."),
    "down": ("isvc.cli.down", "Stop what `isvc up` started."),
    "status": ("isvc.cli.status", "Show whether isvc runs here, and its services."),
    "get": ("isvc.cli.get", "List services of all kinds, and why one is not ready."),
    "render": ("isvc.cli.render", "Print every child that documents would get, with no cluster."),
    "diff": ("isvc.cli.diff", "Show what would change on the cluster if documents were applied."),
    "effective": ("isvc.cli.effective", "Show what a service runs with, and the source of each field."),
    "history": ("isvc.cli.history", "List the specs that a service had before."),
    "undo": ("isvc.cli.undo", "Give a service a spec that it had before."),
    "explain": ("isvc.cli.explain", "Say why a service is not ready, and what would mend it."),
    "wait": ("isvc.cli.wait", "Wait until services are ready, or can never be."),
    "predict": ("isvc.cli.predict", "Send a request to a service and show its answer."),
    "logs": ("isvc.cli.logs", "Show the logs of all pods of a service."),
    "dashboard": ("isvc.cli.dashboard", "Show the services of a cluster in a browser."),
    "runtime": ("isvc.cli.runtime", "Run your own model servers on this machine, in environments of their own."),
    "preflight": ("isvc.cli.preflight", "Check a cluster before a manager is installed."),
    "apiserver": ("isvc.cli.apiserver", "Run the embedded Kubernetes API server alone, in the foreground."),
    "manifests": ("isvc.cli.manifests", "Print what a cluster needs to run the managers, as plain YAML."),
    "envtest": ("isvc.cli.envtest", "Write the assets that run controller-runtime's test suites on it."),
    "completion": ("isvc.cli.completion", "Print the script that completes isvc's commands in a shell."),
}

INTERRUPTED = 130  # as shells report a program that Ctrl-C ended


class Commands(click.Group):
    """Loads `isvc.cli.NAME:command` on demand, and reports what fails in one sentence."""

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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except (click.exceptions.Exit, click.UsageError, BrokenPipeError):
            raise  # click ends quietly where nobody reads the output any more
        except Exception as error:
            if isinstance(error, ExceptionGroup) and error.subgroup(BrokenPipeError):  # one of several tasks' output
                raise BrokenPipeError(errno.EPIPE, "nobody reads") from None
            from isvc.cli.failures import describe_error

            if said := describe_error(error):
                raise click.ClickException(said) from None
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="isvc")
@click.pass_context
def main(ctx: click.Context) -> None:
    """KServe's control plane, on a cluster or on this machine."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
