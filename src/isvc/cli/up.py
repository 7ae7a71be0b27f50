"""`isvc up`: from one command to a place where `kubectl apply` leads to predictions."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isvc.cli.dashboard import PORT_NUMBER, Opened, Wanted, open_entrance
from isvc.wire.allocator import prepare_memory, settle_memory

if TYPE_CHECKING:
    from isvc.local.choices import Choices
    from isvc.local.home import Home, Running
    from isvc.local.stack import Stack


@click.command()
@click.option("--api-port", type=PORT_NUMBER, help="Port of the API server.  [default: 6443, or a free one]")
@click.option("--port", "gateway_port", type=PORT_NUMBER, help="Port of the gateway.  [default: 8080, or a free one]")
@click.option("--dashboard-port", type=PORT_NUMBER, help="Port of the dashboard.  [default: 8090, or a free one]")
@click.option("--no-dashboard", is_flag=True, help="Start without the dashboard.")
@click.option("--allow-edit", is_flag=True, help="Let services be edited on the dashboard.")
@click.option("--ephemeral", is_flag=True, help="Keep objects in memory, and forget them at the end.")
@click.option("--durable", is_flag=True, help="Wait for the disk at every write, so that a power cut loses nothing.")
@click.option("--simulate", is_flag=True, help="Treat pods whose image has no local program as ready.")
@click.option("--sandbox", is_flag=True, help="Confine pods to their own folders and ports (Linux).")
@click.option(
    "--allow-origin",
    "allow_origins",
    multiple=True,
    metavar="ORIGIN",
    help="Let pages of this site, such as http://localhost:3000, use the gateway. May be given several times.",
)
@click.option("--tls", is_flag=True, help="Serve https://*.localhost, too, on port 8443 or a free one.")
@click.option("--access-log", default="", metavar="FILE", help="Log each request to the gateway; - for the terminal.")
@click.option(
    "--access-log-format",
    type=click.Choice(["combined", "json"]),
    default="combined",
    show_default=True,
    help="Format of the access log.",
)
@click.option(
    "--warm-up/--no-warm-up",
    default=True,
    show_default=True,
    help="Import frameworks before a model needs them, where a GiB of memory is free; they are let go in ten minutes.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log what the parts do.")
def command(dashboard_port: int | None, no_dashboard: bool, allow_edit: bool, verbose: bool, **flags: Any) -> None:
    """Start everything on this machine, in the foreground: an API server for kubectl, KServe's controllers, a node that
    runs model servers as processes, and a gateway. Ctrl-C stops all of it; the next start takes up where it ended.

    Files are kept in ~/.isvc, or in $ISVC_HOME. Images become programs by a table, which ~/.isvc/images.yaml extends.
    """
    prepare_memory()
    sys.dont_write_bytecode = False  # whatever the shell wants: a start would compile 900 modules each time
    from isvc.local.choices import Choices
    from isvc.local.gateway.process import find_envoy
    from isvc.local.home import AlreadyRunning, Home
    from isvc.local.open_files import allow_many_files
    from isvc.wire import event_loop

    allow_many_files()
    find_envoy()
    choices = Choices(**flags)
    if choices.sandbox:
        _check_sandbox()
    home = Home.default()
    try:
        home.prepare()
        _log_to(home.logs / "isvc.log", verbose=verbose)
        with home.lock():
            wanted = Wanted(port=dashboard_port, allow_edit=allow_edit)
            dashboard = None if no_dashboard else (wanted, open_entrance(wanted))
            sys.exit(event_loop.run(_up(home, choices, dashboard)))
    except AlreadyRunning as error:
        click.echo(f"{error}; `isvc down` stops it", err=True)
        if error.running:
            _next_steps(home, error.running)
        sys.exit(1)
    except OSError as error:
        raise click.ClickException(f"cannot keep files in {home.root}: {error.strerror or error}") from None


def _check_sandbox() -> None:
    """Refuses to start without the sandbox that was asked for, and says what this kernel leaves out."""
    from isvc.local.node.sandbox.policy import shortcomings, why_not

    if reason := why_not():
        raise click.ClickException(f"pods cannot be confined here: {reason}; start without --sandbox")
    for missing in shortcomings():
        click.echo(f"sandbox: {missing}", err=True)


async def _up(home: Home, choices: Choices, dashboard: tuple[Wanted, Opened] | None) -> int:
    from isvc.kube.errors import ApiError
    from isvc.local.child import DidNotStart
    from isvc.local.stack import PortBusy, Stack
    from isvc.local.status_printer import StatusPrinter
    from isvc.toolkit.clock import SystemClock
    from isvc.toolkit.failure import ClusterError

    stack = Stack(home, choices, _progress)
    this, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert this is not None
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # by `nohup`: then it outlives its terminal
        ends.append(signal.SIGHUP)
    for number in ends:
        loop.add_signal_handler(number, this.cancel)
    try:
        running = await stack.start(dashboard[1].entrance.link if dashboard else "")
        click.echo(f"ready in {stack.seconds:.1f} s")
        if running.gateway_tls:
            click.echo(f"{running.gateway_tls}, for clients that trust {home.tls / 'ca.crt'}")
        _next_steps(home, running)
        printer = StatusPrinter(click.echo, stack.causes.state_of, SystemClock())
        stack.follow(printer.changed)
        background = [asyncio.create_task(printer.run()), _begin_training(home, stack)]
        if dashboard:
            background.append(asyncio.create_task(_start_dashboard(stack, *dashboard)))
        gc.collect()
        settle_memory(stack.count_objects)
        try:
            await stack.run()
        finally:
            for task in background:
                task.cancel()
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):  # the terminal may be gone
            click.echo("\nstopping")
        return 0
    except (DidNotStart, PortBusy, ClusterError, ApiError, OSError) as error:
        click.echo(f"isvc up: {error}", err=True)
        return 1
    finally:
        for number in ends:  # it is stopping, which takes seconds at most
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)  # to the very end, when neither loop nor interpreter listen
        this.uncancel()
        await stack.stop()
    return 0


async def _start_dashboard(stack: Stack, wanted: Wanted, opened: Opened) -> None:
    """Starts the dashboard when somebody opens its link: what it imports and keeps is for readers alone."""
    from isvc.cli.dashboard import start

    await _first_visit(opened.sockets)
    try:
        await asyncio.to_thread(import_module, "isvc.dashboard.server")
        dashboard = await start(stack.client, wanted, opened=opened)
    except Exception as error:  # isvc may have been installed anew since it was started
        for each in opened.sockets:  # whoever comes would wait for ever
            each.close()
        logging.getLogger("isvc.up").exception("the dashboard does not start")
        click.echo(f"the dashboard does not start ({error}); another `isvc up` may have it", err=True)
        return
    stack.on_stop(dashboard.close)


async def _first_visit(sockets: Sequence[socket.socket]) -> None:
    """Returns when somebody connects to one of the sockets, who is not taken in yet."""
    loop, visited = asyncio.get_running_loop(), asyncio.Event()
    for each in sockets:
        loop.add_reader(each.fileno(), visited.set)
    try:
        await visited.wait()
    finally:
        for each in sockets:
            loop.remove_reader(each.fileno())


def _begin_training(home: Home, stack: Stack) -> asyncio.Task[None]:
    """Makes the models of the examples where they are missing; whoever needs one waits for it."""
    from isvc.local.examples import folder

    training = asyncio.create_task(_train(models := folder(home.claims)))
    stack.node.expect_files(models, training)
    return training


async def _train(models: Path) -> None:
    """Makes them in a program of its own."""
    from isvc.local.examples import missing_models

    if not missing_models(models):
        return
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "isvc.local.examples", str(models), stderr=asyncio.subprocess.PIPE
    )
    try:
        _, errors = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if process.returncode:
        logging.getLogger("isvc.up").warning("the example models are not complete: %s", errors.decode().strip())


def _progress(part: str, seconds: float) -> None:
    click.echo(f"  {part} {click.style(f'{seconds:.2f} s', dim=True)}")


def _next_steps(home: Home, running: Running) -> None:
    from isvc.local.examples import manifests

    folder = shlex.quote(str(manifests(home)))
    url = "$(kubectl get isvc iris -o jsonpath='{.status.url}')"
    if running.dashboard:
        click.echo(f"\n  dashboard: {running.dashboard}")
    click.echo(
        f"\n  export KUBECONFIG={shlex.quote(str(running.kubeconfig))}\n"
        f"  kubectl apply -f {folder}/iris.yaml && kubectl wait --for=condition=Ready isvc/iris\n"
        f"  curl {url}/v1/models/iris:predict -d @{folder}/iris-input.json\n"
    )
    if shutil.which("kubectl") is None:
        click.echo("  kubectl is not on the PATH; https://kubernetes.io/docs/tasks/tools/ has it\n")


def _log_to(path: Path, *, verbose: bool) -> None:
    from isvc.toolkit import logs
    from isvc.wire.private_files import open_private

    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback on the terminal
    stream: Any = sys.stderr if verbose else open_private(path, "a")
    logs.set_up("debug" if verbose else "info", json=False, stream=stream)
