"""The API server: store, registry and verbs behind an HTTPS port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Protocol

import orjson

from isvc.apiserver import bootstrap
from isvc.apiserver.access import identity
from isvc.apiserver.access.authentication import Authenticator
from isvc.apiserver.access.identity import Credentials, Identity
from isvc.apiserver.access.impersonation import impersonate
from isvc.apiserver.access.rbac import Rbac, authorize
from isvc.apiserver.access.reviews import Reviews
from isvc.apiserver.access.tokens import Tokens
from isvc.apiserver.addresses import SERVICE_NETWORK, ServiceAddresses
from isvc.apiserver.admission import Admission
from isvc.apiserver.admission.plugins import enabled_plugins
from isvc.apiserver.admission.policies import Policies
from isvc.apiserver.admission.quota import ResourceQuota
from isvc.apiserver.background.definitions import DefinitionFinalizer, NameAcceptance
from isvc.apiserver.background.expiry import EventExpiry
from isvc.apiserver.background.garbage import GarbageCollector
from isvc.apiserver.background.namespaces import NamespaceAccounts, NamespaceFinalizer
from isvc.apiserver.background.quotas import QuotaStatus
from isvc.apiserver.builtin.base import Claims
from isvc.apiserver.builtin.catalog import descriptions
from isvc.apiserver.crd.registration import CustomResources
from isvc.apiserver.http.handler import ApiHandler
from isvc.apiserver.http.response import Response
from isvc.apiserver.nonresource import discovery
from isvc.apiserver.nonresource.metrics import Metrics
from isvc.apiserver.nonresource.openapi import OpenApi
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import Request
from isvc.apiserver.resource_metrics import ResourceMetrics
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.router import Router, nothing_here
from isvc.apiserver.store.lock import FolderLock
from isvc.apiserver.store.store import Store
from isvc.apiserver.target import Target, parse
from isvc.apiserver.verbs.node import Nodes
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import ApiError, Unauthorized
from isvc.wire.http1 import message
from isvc.wire.http1.connection import Connection
from isvc.wire.http1.server import HttpServer
from isvc.wire.x509.files import CertificateFiles

log = logging.getLogger(__name__)

HEALTH = ("/healthz", "/livez", "/readyz")
HEALTH_CHECKS = (["ping"], ["log"], ["etcd"])
IDLE_SECONDS = 600.0
RENEWAL_SECONDS = 30.0


class Background(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(eq=False)
class Server:
    """Keeps certificates in `folder`, and objects too unless `ephemeral`. Listens at `socket`, too, without TLS."""

    folder: Path
    _: KW_ONLY
    ephemeral: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    socket: Path | None = None
    controllers: bool = False
    durable: bool = False
    credentials: Credentials = field(default_factory=Credentials)
    service_network: str = SERVICE_NETWORK
    without_plugins: Sequence[str] | None = None

    async def start(self) -> None:
        """Loads what is kept, and listens. Raises InUse, OSError or Unusable if that cannot be."""
        self._lock = FolderLock(self.folder)
        try:
            await self._start()
        except BaseException:
            self._lock.release()
            raise

    def load_identity(self) -> Identity:
        """Returns certificates and tokens, made where they are missing."""
        return identity.load(self.folder / "pki", self._hosts)

    @property
    def _hosts(self) -> list[str]:
        return list(dict.fromkeys(["localhost", "127.0.0.1", "kubernetes.default.svc", self.host]))

    async def _start(self) -> None:
        self.identity = self.load_identity()
        self.store = Store(None if self.ephemeral else self.folder, durable=self.durable)
        claims = Claims(ServiceAddresses(self.service_network))
        claims.follow(self.store)
        self.registry = Registry(descriptions(claims))
        reader = Reader(self.store)
        plugins = enabled_plugins(reader, self.without_plugins, controllers=self.controllers)
        policies = Policies(reader, self.registry)
        self._admission = Admission(reader, plugins=plugins, policies=policies, quota=ResourceQuota(self.store))
        self._custom = CustomResources(self.store, self.registry, self._admission.caller)
        self._resource_metrics = ResourceMetrics(self.store, self.registry)
        tokens = Tokens(self.folder / "pki", self._uid_of)
        self._authenticator = Authenticator(self.identity, tokens, self.credentials.tokens)
        self._rbac = Rbac(self.store)
        self._nodes = Nodes(self.store, self.identity)
        self.api = Api(self.store, self.registry, self._admission, self.identity, tokens, self._rbac, self._nodes)
        self._router = Router(self.api, Reviews(self._authenticator, self._rbac))
        self._openapi = OpenApi(self.registry)
        self.metrics = Metrics(self.store, self.registry)
        handler = ApiHandler(self.handle, self.metrics.observe_latency)
        self._http = HttpServer(handler, idle_seconds=IDLE_SECONDS, tls=self._certificate())
        address, self.port = await self._http.listen(self.host, self.port)
        if self.socket is not None:
            await self._http.listen_at(self.socket)
        await bootstrap.create_missing(self.api, claims.addresses.kubernetes, address, self.port)
        self._background: list[Background] = [
            DefinitionFinalizer(self.api),
            NameAcceptance(self.api, claims.names),
            EventExpiry(self.api),
        ]
        if self.controllers:
            self._background += [
                GarbageCollector(self.api),
                NamespaceFinalizer(self.api),
                NamespaceAccounts(self.api),
                QuotaStatus(self.api),
            ]
        for each in self._background:
            each.start()
        self._renewal = asyncio.create_task(self._renew_certificates(), name="serving certificates")

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in bootstrap.ANYWHERE else self.host
        return f"https://{host}:{self.port}"

    async def stop(self) -> None:
        """Ends watches, lets requests under way finish, and closes the store."""
        self._renewal.cancel()
        for each in self._background:
            each.stop()
        await self._http.stop()
        await self._admission.close()
        await self._nodes.close()
        self.store.close()
        self._lock.release()

    def _certificate(self) -> CertificateFiles:
        context = self.identity.server_context()
        if self.credentials.client_ca is not None:
            context.load_verify_locations(self.credentials.client_ca)
        files = CertificateFiles(context, *(self.credentials.serving or self.identity.serving))
        files.load()
        return files

    async def _renew_certificates(self) -> None:
        """Replaces those in their last third; connections are shown the new one from then on."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                if identity.renew_serving(self.identity.folder, self._hosts):
                    log.info("renewed the serving certificates")
            except OSError as error:
                log.error("the serving certificates could not be renewed: %s", error)

    def handle(
        self, request: Request, connection: Connection[Request]
    ) -> message.Response | Awaitable[message.Response]:
        path = request.path
        if path.startswith(HEALTH):
            return self._health(path)
        given = request.headers.get("authorization")
        user = self._authenticator.user(given, connection.peer_certificate() if given is None else None)
        if user is None:
            raise Unauthorized("Unauthorized")
        request.user = impersonate(request, user, self._rbac)
        target = parse(path) if path.startswith("/api") else None
        if target is not None and target.watched:
            target = _as_watch(request, target)
        request.target = target
        authorize(self._rbac, request, target)
        if target is not None and target.plural:
            return self._router.fast_get(request, target) or self._router.resource(request, target)
        return self._other(request)

    def _uid_of(self, collection: str, namespace: str, name: str) -> str | None:
        entry = self.store.get(collection, namespace, name)
        return entry.parse()["metadata"]["uid"] if entry else None

    def _health(self, path: str) -> Response:
        check = path.split("/", 2)[2:]
        if path in HEALTH or check in ([], [""], *HEALTH_CHECKS):
            return Response.text("ok")
        return Response.text("404 page not found\n", 404)

    def _other(self, request: Request) -> Response | Awaitable[Response]:
        """Answers everything that is not a resource: discovery, OpenAPI, version."""
        if request.method not in ("GET", "HEAD"):
            return Response.text("404 page not found\n", 404)
        path = request.path.rstrip("/")
        parts = path.split("/")[1:]
        try:
            match parts:
                case ["metrics"]:
                    return Response(self.metrics.text(self._streams()), 200, "text/plain; version=0.0.4; charset=utf-8")
                case ["version"]:
                    return Response.json(discovery.VERSION)
                case [""] | []:
                    return Response.json({"paths": self._paths()})
                case ["api"] | ["apis"]:
                    return self._discovery(request, core=parts == ["api"])
                case ["apis", group] if group in discovery.groups(self.registry):
                    return Response.json(discovery.group(self.registry, group))
                case ["api", version] if version == "v1":
                    return Response.json(discovery.resource_list(self.registry, "", version))
                case ["apis", group, version] if self.registry.has_group_version(group, version):
                    return Response.json(discovery.resource_list(self.registry, group, version))
                case ["openapi", *rest]:
                    return self._openapi.answer(request, "/".join(rest))
                case ["apis", group, *_]:
                    return nothing_here(self.registry, group)
                case ["api", *_]:
                    return nothing_here(self.registry, "")
        except ApiError as error:
            return Response.error(error)
        return Response.text("404 page not found\n", 404)

    def _discovery(self, request: Request, core: bool) -> Response:
        if discovery.wants_aggregated(request.accept):
            return Response(orjson.dumps(discovery.aggregate(self.registry, core)), 200, discovery.AGGREGATED_TYPE)
        if core:
            return Response.json(discovery.core_versions(self.url.removeprefix("https://")))
        return Response.json(discovery.group_list(self.registry))

    def _streams(self) -> list[Request]:
        return [each.streaming for each in self._http.connections if each.streaming is not None]

    def _paths(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", *HEALTH, "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
        for group, versions in discovery.groups(self.registry).items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(paths)


def _as_watch(request: Request, target: Target) -> Target:
    """Rewrites the old form of a watch as the new one: a parameter, and a selector for a single object."""
    request.query["watch"] = "true"
    if target.name:
        request.query["fieldSelector"] = f"metadata.name={target.name}"
    return target._replace(name="")
