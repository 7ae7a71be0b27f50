"""Credentials of each request: headers and client certificate, refreshed before they expire.

A token file is read again every minute (the kubelet rotates it), an exec plugin is run again shortly before what it
printed expires, and either is renewed at once when the server answers 401.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from isvc.kube.timestamps import parse_timestamp
from isvc.toolkit.client.kubeconfig import ClusterConfig, ExecPlugin, Impersonation
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ConfigError
from isvc.wire.http1.message import header_lines
from isvc.wire.x509.check import read_certificate

REREAD_TOKEN_FILE = 60.0
RENEW_BEFORE_EXPIRY = 10.0
PLUGIN_DEADLINE = 60.0


class Credentials:
    def __init__(self, config: ClusterConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._fixed = _impersonation_headers(config.impersonate)
        self._certificate = (config.client_certificate, config.client_key)
        self._refreshable = config.plugin is not None or config.token_file is not None
        self._expires = float("-inf") if self._refreshable else float("inf")
        self._turn = asyncio.Lock()
        self.headers = ""  # lines of a request's head
        self.tls: ssl.SSLContext | None = None
        if not self._refreshable:
            self._use(config.token)
            self._renew_tls()

    @property
    def fresh(self) -> bool:
        return self._clock.monotonic() < self._expires

    async def renew(self, *, rejected: bool = False) -> bool:
        """Makes `headers` and `tls` valid, also valid ones after a 401 (`rejected`). Returns False if none can be."""
        if not self._refreshable:
            return False
        before = self._expires
        async with self._turn:
            if self._expires != before or (self.fresh and not rejected):
                return True  # another request did, while we waited
            if self._config.plugin is not None:
                await self._run_plugin(self._config.plugin)
            elif self._config.token_file is not None:
                self._use(_read_token(self._config.token_file))
                self._expires = self._clock.monotonic() + REREAD_TOKEN_FILE
            if self.tls is None:
                self._renew_tls()
            return True

    def _use(self, token: str) -> None:
        headers = list(self._fixed)
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        elif self._config.basic:
            pair = base64.b64encode(":".join(self._config.basic).encode()).decode()
            headers.append(("Authorization", f"Basic {pair}"))
        try:
            self.headers = header_lines(headers)
        except ValueError as error:
            raise ConfigError(f"the credentials cannot be sent: {error}") from None

    async def _run_plugin(self, plugin: ExecPlugin) -> None:
        status = await _credential(plugin, self._config)
        self._use(str(status.get("token") or ""))
        certificate = (
            str(status.get("clientCertificateData") or "").encode(),
            str(status.get("clientKeyData") or "").encode(),
        )
        if certificate[0] and certificate != self._certificate:
            self._certificate = certificate
            self._renew_tls()
        expiry = status.get("expirationTimestamp")
        self._expires = float("inf")
        if expiry:
            left = (parse_timestamp(str(expiry)) - self._clock.now()).total_seconds()
            self._expires = self._clock.monotonic() + left - RENEW_BEFORE_EXPIRY

    def _renew_tls(self) -> None:
        if self._config.server.startswith("https://") and not self._config.socket:
            self.tls = tls_context(self._config, *self._certificate)

    def certificate_problem(self) -> str:
        """Says that the client certificate has expired, if it has: servers refuse it without saying so."""
        if not self._certificate[0]:
            return ""
        expiry = read_certificate(self._certificate[0]).expires
        return f"the client certificate expired on {expiry:%Y-%m-%d}" if expiry < self._clock.now() else ""


def tls_context(config: ClusterConfig, certificate: bytes, key: bytes) -> ssl.SSLContext:
    try:
        if config.ca or config.insecure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            context = ssl.create_default_context()
        if config.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif config.ca:
            context.load_verify_locations(cadata=config.ca.decode("ascii", "replace"))
    except ssl.SSLError:
        raise ConfigError("the certificate authority of the cluster is not a valid PEM certificate") from None
    if certificate:
        _load_pair(context, certificate, key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:  # readable by us alone; ssl takes no bytes
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except (ssl.SSLError, OSError):
            raise ConfigError("the client certificate and key are not a valid pair") from None


def _impersonation_headers(who: Impersonation) -> list[tuple[str, str]]:
    headers = [("Impersonate-User", who.user)] if who.user else []
    if who.uid:
        headers.append(("Impersonate-Uid", who.uid))
    headers += [("Impersonate-Group", group) for group in who.groups]
    for name, values in who.extra.items():
        headers += [(f"Impersonate-Extra-{quote(name, safe='')}", value) for value in values]
    return headers


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"cannot read the token file {path}: {error.strerror}") from None


async def _credential(plugin: ExecPlugin, config: ClusterConfig) -> dict[str, Any]:
    """Runs the plugin; returns the `status` of the ExecCredential that it prints."""
    info: dict[str, Any] = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": {"interactive": False}}
    if plugin.provide_cluster_info:
        cluster = {"server": config.server, "insecure-skip-tls-verify": config.insecure}
        if config.ca:
            cluster["certificate-authority-data"] = base64.b64encode(config.ca).decode()
        info["spec"]["cluster"] = cluster
    environment = os.environ | plugin.env | {"KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise ConfigError(f"credential plugin {plugin.command}: {error.strerror}{hint}") from None
    try:
        output, errors = await asyncio.wait_for(process.communicate(), PLUGIN_DEADLINE)
    except TimeoutError:
        process.kill()
        raise ConfigError(f"credential plugin {plugin.command} gave no answer in {PLUGIN_DEADLINE:.0f} s") from None
    if process.returncode:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise ConfigError(f"credential plugin {plugin.command} failed with status {process.returncode}: {last}")
    try:
        status = orjson.loads(output)["status"]
        assert isinstance(status, dict)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise ConfigError(f"credential plugin {plugin.command} did not print an ExecCredential with a status") from None
    return status
