"""`isvc dashboard`: services of a cluster in a browser."""

from __future__ import annotations

import asyncio
import errno
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from isvc.cli.cluster import Cluster, cluster_options

if TYPE_CHECKING:
    import socket
    import ssl

    from isvc.dashboard.entrance import Entrance
    from isvc.dashboard.server import Dashboard
    from isvc.toolkit.client import Client

PORT_NUMBER = click.IntRange(0, 65535)
_PORT = 8090
_FIRST_LOOK = 5.0  # seconds for which the link waits until its first page is there at once
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags of the same names say. A `port` that is not given is 8090, or a free one."""

    host: str = "127.0.0.1"
    port: int | None = None
    allow_edit: bool = False
    password_file: Path | None = None
    user_tokens: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    namespaces: tuple[str, ...] = ()


class Opened(NamedTuple):
    """The entrance of a dashboard, and the sockets on which it listens."""

    entrance: Entrance
    sockets: list[socket.socket]


@click.command()
@click.option("--address", "host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=PORT_NUMBER, help="Port to listen on.  [default: 8090, or a free one]")
@click.option("--allow-edit", is_flag=True, help="Let services be stopped, scaled, undone and deleted.")
@click.option("--password-file", type=_FILE, help="Let in whoever knows the password in this file.")
@click.option("--user-tokens", is_flag=True, help="Let in users with their own tokens for the cluster, as themselves.")
@click.option("--tls-cert", type=_FILE, help="Certificate to serve HTTPS with.")
@click.option("--tls-key", type=_FILE, help="Key of the certificate.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser.")
@cluster_options()
def command(cluster: Cluster, open_browser: bool, **flags: Any) -> None:
    """Show the services of a cluster in a browser, live, with what keeps one from being ready.

    It listens on this machine alone, and lets in whoever has the link that it prints. On other addresses it wants a
    password, or users' own tokens: then the cluster's own rules say what each of them sees. With -n only that
    namespace is shown. Ctrl-C ends it.
    """
    wanted = Wanted(**flags, namespaces=(cluster.namespace,) if cluster.namespace else ())
    _check(wanted)
    _log_errors()
    cluster.run(lambda client: _serve(client, wanted, open_browser=open_browser))


def _log_errors() -> None:
    from isvc.toolkit import logs

    logs.set_up("error", json=False)


def _check(wanted: Wanted) -> None:
    from isvc.dashboard.guard import is_loopback
    from isvc.kube.gourl import url_host

    if wanted.password_file and wanted.user_tokens:
        raise click.UsageError("--password-file and --user-tokens exclude each other")
    if bool(wanted.tls_cert) != bool(wanted.tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if is_loopback(url_host(wanted.host)):
        return
    if not (wanted.password_file or wanted.user_tokens):
        raise click.UsageError(f"on {wanted.host} others could look: add --user-tokens or --password-file")
    if not wanted.tls_cert:
        click.echo("without --tls-cert what is typed crosses the network in the clear", err=True)


async def _serve(client: Client, wanted: Wanted, *, open_browser: bool) -> None:
    dashboard = await start(client, wanted, first_look=_FIRST_LOOK)
    click.echo(f"dashboard of {client.config.server}: {dashboard.link}")
    if open_browser:
        click.launch(dashboard.link)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    try:
        await ended.wait()
    finally:
        await dashboard.close()


async def start(client: Client, wanted: Wanted, first_look: float = 0.0, opened: Opened | None = None) -> Dashboard:
    """Starts a dashboard that listens; waits up to `first_look` seconds until it has read what its user may see."""
    from isvc.dashboard import sign_in
    from isvc.dashboard.cluster.scoped_views import ScopedViews
    from isvc.dashboard.cluster.user_views import UserViews
    from isvc.dashboard.cluster.views_in_use import Views
    from isvc.dashboard.server import Dashboard

    entrance, sockets = opened or open_entrance(wanted)
    sessions = sign_in.Sessions(entrance.port, secure=entrance.tls is not None)
    own = ScopedViews(client, wanted.namespaces, idle=None)
    views: Views = own
    admission: sign_in.SignIn = sign_in.LinkSignIn(sessions, entrance.token)
    if wanted.user_tokens:
        views = users = UserViews(client.config, wanted.namespaces)
        admission = sign_in.FormSignIn(sessions, "Your token for the cluster", users.accepts)
    elif wanted.password_file:
        admission = sign_in.FormSignIn(sessions, "Password", sign_in.password_check(_password(wanted.password_file)))
    dashboard = Dashboard(entrance, views, admission, sessions, allow_edit=wanted.allow_edit)
    await dashboard.start(sockets)
    if not wanted.user_tokens:
        await asyncio.wait((own.open(),), timeout=first_look)
    return dashboard


def open_entrance(wanted: Wanted) -> Opened:
    """Listens where that is wanted; refuses a port that was asked for and is taken."""
    from isvc.dashboard.entrance import Entrance
    from isvc.local.node.pods.ports import Ports
    from isvc.local.stack import port_or_free

    spare = Ports()  # as long as it lives, nobody else takes the port that it gave
    entrance = Entrance(wanted.host, port_or_free(wanted.port, _PORT, spare), _tls(wanted))
    try:
        return Opened(entrance, entrance.listen())
    except OSError as error:
        if wanted.port is None and error.errno == errno.EADDRINUSE:  # another start was faster
            return open_entrance(replace(wanted, port=0))
        raise click.ClickException(f"cannot listen on {wanted.host}: {error.strerror or error}") from None


def _password(path: Path) -> str:
    text = path.read_text().strip()
    if len(text) < 8:
        raise click.ClickException(f"the password in {path} is shorter than 8 characters")
    return text


def _tls(wanted: Wanted) -> ssl.SSLContext | None:
    import ssl

    if wanted.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(wanted.tls_cert, wanted.tls_key)
    except (ssl.SSLError, OSError) as error:
        raise click.ClickException(f"cannot use {wanted.tls_cert}: {error}") from None
    return context
