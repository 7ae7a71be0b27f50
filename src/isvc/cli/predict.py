"""`isvc predict`: one request to a service, without having to know its URL, path or protocol."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.progress import Progress
from isvc.cli.seconds import Seconds

if TYPE_CHECKING:
    from isvc.insight.operations.endpoint import Endpoint
    from isvc.toolkit.client import Client


@click.command()
@click.argument("name", shell_complete=complete_services)
@click.option("-d", "--data", metavar="FILE", help="The request: a JSON file, - for stdin, or JSON itself.")
@click.option("-p", "--prompt", help="Instead of -d: what to say to a language model.")
@click.option("--path", default="", help="Path to send it to.  [default: found from the request's fields]")
@click.option(
    "--repeat",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Send it this many times, to measure the latency.",
)
@click.option(
    "--timeout", "within", type=Seconds(), default="2m", show_default=True, help="How long to wait for an answer."
)
@cluster_options()
def command(
    cluster: Cluster, name: str, data: str | None, prompt: str | None, path: str, repeat: int, within: float
) -> None:
    """Send a request to service NAME and show its answer; the latency goes to stderr.

    The protocol follows from the request: `instances` is v1, `inputs` v2, `messages` OpenAI's chat, `prompt` its
    completions. With "stream": true, or with -p, text is shown as it comes.
    """
    body = _body(data, prompt)
    cluster.run(lambda client: _predict(client, cluster, name, body, path, repeat, within))


def _body(data: str | None, prompt: str | None) -> dict[str, Any]:
    from isvc.insight.operations.endpoint import parse_request

    if (data is None) == (prompt is None):
        raise click.UsageError("give a request with -d, or a prompt with -p")
    if data is None:
        return {"messages": [{"role": "user", "content": prompt}], "stream": True}
    if data == "-":
        text = sys.stdin.buffer.read()
    else:
        text = data.encode() if data.lstrip().startswith("{") else Path(data.removeprefix("@")).read_bytes()
    return parse_request(text)


async def _predict(
    client: Client, cluster: Cluster, name: str, body: dict[str, Any], path: str, repeat: int, within: float
) -> None:
    import aiohttp  # noqa: F401 - what the first request would import must not count as its latency

    from isvc.insight.operations import kinds
    from isvc.insight.operations.endpoint import find_endpoint

    _, service = await kinds.find(client, name, cluster.scope(client))
    target = find_endpoint(service, body, path)
    body = target.complete(body)
    latencies = []
    for turn in range(repeat):
        started = time.monotonic()
        if body.get("stream"):
            await _stream(target, body, within)
        else:
            with Progress(f"waiting for {target.url}"):
                answer = await target.post(client, body, within)
            if turn == repeat - 1:
                _show(answer)
        latencies.append(time.monotonic() - started)
    _report(target, latencies)


async def _stream(target: Endpoint, body: dict[str, Any], within: float) -> None:
    started, first, pieces = time.monotonic(), None, 0
    async for piece in target.stream(body, within):
        first = first or time.monotonic() - started
        pieces += 1
        click.echo(_without_commands(piece), nl=False)
    click.echo()
    if first is not None:
        rate = pieces / max(time.monotonic() - started, 1e-9)
        click.echo(click.style(f"first piece after {first * 1000:.0f} ms, {rate:.1f} a second", dim=True), err=True)


def _show(answer: bytes) -> None:
    """Prints what came; on a terminal, JSON is indented, and nothing commands it."""
    import orjson

    if not sys.stdout.isatty():
        click.echo(answer.rstrip())
        return
    with suppress(orjson.JSONDecodeError):
        answer = orjson.dumps(orjson.loads(answer), option=orjson.OPT_INDENT_2)
    click.echo(_without_commands(answer.decode(errors="replace")).rstrip())


def _without_commands(text: str) -> str:
    """Returns what a server said, without what would command a terminal, where it is shown on one."""
    from isvc.kube.masking import drop_controls

    return drop_controls(text) if sys.stdout.isatty() else text


def _report(target: Endpoint, latencies: list[float]) -> None:
    from statistics import median

    text = f"{latencies[0] * 1000:.0f} ms" if len(latencies) == 1 else ""
    if not text:
        ordered = sorted(latencies)
        figures = {"min": ordered[0], "median": median(ordered), "max": ordered[-1]}
        text = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in figures.items())
    click.echo(click.style(f"{target.url}: {text}", dim=True), err=True)
