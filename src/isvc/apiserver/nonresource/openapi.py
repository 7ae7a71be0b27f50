"""OpenAPI documents over HTTP: made when first asked for, kept until what is served changes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import orjson

from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Request
from isvc.apiserver.resources.description import Description
from isvc.apiserver.resources.registry import Registry

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#: What clients ask for; it is no valid media type, so it is not what they get.
PROTOBUF_V2_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


class OpenApi:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = -1
        self._made: dict[str, asyncio.Future[tuple[bytes, str] | None]] = {}

    async def answer(self, request: Request, path: str) -> Response:
        if self._revision != self._registry.revision:
            self._made.clear()
            self._revision = self._registry.revision
        protobuf = path == "v2" and any(each in request.accept for each in (PROTOBUF_V2, PROTOBUF_V2_ASKED))
        if protobuf:
            path = "v2 protobuf"
        if path not in self._made:
            making = asyncio.to_thread(_make, list(self._registry), path)  # tens of milliseconds
            self._made[path] = asyncio.ensure_future(making)
        try:
            made = await asyncio.shield(self._made[path])  # others may wait for it, too
        except Exception:
            self._made.pop(path, None)  # the next one tries again
            raise
        if made is None:
            return Response.text("404 page not found\n", 404)
        body, digest = made
        tag = f'"{digest}"'
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, headers={"Etag": tag})
        return Response(body, 200, PROTOBUF_V2 if protobuf else "application/json", {"Etag": tag})


def _make(served: Sequence[Description], path: str) -> tuple[bytes, str] | None:
    """Returns a document and its digest; nothing where there is none."""
    body = _document(served, path)
    return None if body is None else (body, hashlib.sha256(body).hexdigest()[:32].upper())


def _document(served: Sequence[Description], path: str) -> bytes | None:
    from isvc.apiserver import openapi

    if path == "v2":
        return openapi.v2(served)
    if path == "v2 protobuf":
        return openapi.v2_protobuf(served)
    if path == "v3":
        return orjson.dumps(openapi.v3_index(served))
    if path.startswith("v3/"):
        return openapi.v3(served, path.removeprefix("v3/"))
    return None
