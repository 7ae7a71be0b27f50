"""Where the cluster is and who we are: kubeconfig files as kubectl reads them, or a pod's service account.

Reading is all that happens here; tokens are fetched and refreshed by `credentials`, connections opened by `client`.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isvc.kube.gourl import url_host
from isvc.toolkit.failure import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CREDENTIALS = {"token", "tokenFile", "username", "exec", "client-certificate", "client-certificate-data"}


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    provide_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class Impersonation:
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Everything needed to talk to one cluster as one user. Certificates and keys are PEM."""

    server: str
    socket: str = ""  # the path where the server listens without TLS, if it does: it is asked there
    namespace: str = "default"
    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    client_certificate: bytes = b""
    client_key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    basic: tuple[str, str] | None = field(default=None, repr=False)
    plugin: ExecPlugin | None = None
    impersonate: Impersonation = field(default_factory=Impersonation)


def load(path: str | os.PathLike[str] | None = None, context: str | None = None) -> ClusterConfig:
    """Loads `context`, or the current one, from `path`, $KUBECONFIG, the pod's service account or ~/.kube/config."""
    if path is not None:
        return _from_files([Path(path)], context, must_exist=True)
    if listed := [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]:
        return _from_files(listed, context, must_exist=False)
    home = Path.home() / ".kube" / "config"
    if context is None and (SERVICE_ACCOUNT / "token").exists() and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    if home.exists():
        return _from_files([home], context, must_exist=True)
    raise ConfigError(f"no cluster is configured: KUBECONFIG is not set, {home} does not exist, and this is not a pod")


def in_cluster(account: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """Returns the configuration of a pod's service account, whose token the kubelet rotates."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("this is not a pod: KUBERNETES_SERVICE_HOST is not set")
    namespace = account / "namespace"
    return ClusterConfig(
        server=f"https://{url_host(host)}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca=_read(account / "ca.crt"),
        token_file=account / "token",
    )


def _from_files(paths: list[Path], context: str | None, *, must_exist: bool) -> ClusterConfig:
    documents = [(path, _parse(path)) for path in paths if must_exist or path.exists()]
    if not documents:
        raise ConfigError(f"kubeconfig not found: {', '.join(map(str, paths))}")
    name = context or next((str(doc["current-context"]) for _, doc in documents if doc.get("current-context")), "")
    shown = ", ".join(str(path) for path, _ in documents)
    if not name:
        raise ConfigError(f"kubeconfig {shown}: no current-context is set; choose one with --context")
    found = _entry(documents, "contexts", name)
    if found is None:
        known = sorted(str(e.get("name")) for _, doc in documents for e in _entries(doc, "contexts"))
        raise ConfigError(f"kubeconfig {shown}: no context {name!r}; it has: {', '.join(known) or 'none'}")
    chosen = found[1]
    cluster = _entry(documents, "clusters", str(chosen.get("cluster", "")))
    if cluster is None:
        raise ConfigError(f"kubeconfig {shown}: context {name!r} names cluster {chosen.get('cluster')!r}, not defined")
    user = _entry(documents, "users", str(chosen["user"])) if chosen.get("user") else (cluster[0], {})
    if user is None:
        raise ConfigError(f"kubeconfig {shown}: context {name!r} names user {chosen.get('user')!r}, not defined")
    try:
        return _config(cluster, user, str(chosen.get("namespace") or "default"))
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise ConfigError(f"kubeconfig {shown}: malformed entry: {error}") from None


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        is_reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # half of an IPv6 address, a port that is none
        return False
    return parts.scheme in ("http", "https") and is_reachable and server.isprintable() and " " not in server


def _config(cluster: tuple[Path, Any], user: tuple[Path, Any], namespace: str) -> ClusterConfig:
    cluster_dir, at = cluster[0].parent, cluster[1]
    user_dir, who = user[0].parent, user[1]
    server = str(at.get("server") or "").rstrip("/")
    if not _is_address(server):
        raise ConfigError(f"kubeconfig {cluster[0]}: server {server!r} is not an http(s) address")
    if "@" in urlsplit(server).netloc:  # every message about this server would show it
        raise ConfigError(f"kubeconfig {cluster[0]}: server holds a name or password, which belong to the user's entry")
    if (provider := who.get("auth-provider")) and not who.keys() & _CREDENTIALS:
        raise ConfigError(
            f"kubeconfig {user[0]}: the user logs in by auth-provider {provider.get('name')}, which is not known here; "
            "a plugin (exec) or a token is"
        )
    token_file = who.get("tokenFile")
    return ClusterConfig(
        server=server,
        namespace=namespace,
        ca=_material(at, "certificate-authority", cluster_dir),
        insecure=bool(at.get("insecure-skip-tls-verify")),
        server_name=str(at.get("tls-server-name") or ""),
        proxy=str(at.get("proxy-url") or ""),
        client_certificate=_material(who, "client-certificate", user_dir),
        client_key=_material(who, "client-key", user_dir),
        token=str(who.get("token") or ""),
        token_file=user_dir / token_file if token_file else None,
        basic=(str(who["username"]), str(who.get("password") or "")) if who.get("username") else None,
        plugin=_plugin(who.get("exec"), user_dir),
        impersonate=Impersonation(
            user=str(who.get("as") or ""),
            uid=str(who.get("as-uid") or ""),
            groups=tuple(who.get("as-groups") or ()),
            extra={key: tuple(values) for key, values in (who.get("as-user-extra") or {}).items()},
        ),
    )


def _plugin(entry: Any, folder: Path) -> ExecPlugin | None:
    if not entry:
        return None
    command = str(entry["command"])
    if os.sep in command and not os.path.isabs(command):
        command = str(folder / command)
    return ExecPlugin(
        command=command,
        api_version=str(entry.get("apiVersion") or "client.authentication.k8s.io/v1"),
        args=tuple(str(arg) for arg in entry.get("args") or ()),
        env={str(pair["name"]): str(pair["value"]) for pair in entry.get("env") or ()},
        install_hint=" ".join(str(entry.get("installHint") or "").split()),
        provide_cluster_info=bool(entry.get("provideClusterInfo")),
    )


def _parse(path: Path) -> dict[str, Any]:
    import yaml

    text = _read(path)
    try:
        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    except yaml.YAMLError as error:
        raise ConfigError(f"kubeconfig {path} is not valid YAML: {' '.join(str(error).split())}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path} is malformed: a mapping was expected, not a {type(document).__name__}")
    return document


def _entries(document: dict[str, Any], section: str) -> list[dict[str, Any]]:
    entries = document.get(section) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"kubeconfig is malformed: {section!r} has to be a list of named entries")
    return entries


def _entry(documents: list[tuple[Path, dict[str, Any]]], section: str, name: str) -> tuple[Path, dict[str, Any]] | None:
    """Returns the first entry of that name, and the file that relative paths in it start from."""
    for path, document in documents:
        for entry in _entries(document, section):
            if entry.get("name") == name:
                return path, entry.get(section.removesuffix("s")) or {}
    return None


def _material(entry: Mapping[str, Any], name: str, folder: Path) -> bytes:
    if data := entry.get(f"{name}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"kubeconfig: {name}-data is not valid base64") from None
    return _read(folder / str(entry[name])) if entry.get(name) else b""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
