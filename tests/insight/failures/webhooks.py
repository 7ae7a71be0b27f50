"""Admission webhooks of others: one that denies, and the configurations that name them."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from aiohttp import web
from tests.ports import free_port

from isvc.kube.objects import Object
from isvc.kube.resource import (
    Resource,
)
from isvc.wire.x509.files import server_context
from isvc.wire.x509.issue import issue_self_signed


@contextlib.asynccontextmanager
async def denying_webhook() -> AsyncIterator[Object]:
    """Somebody's policy, as a real webhook: no Deployments for those who carry its label."""

    async def review(request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        answer = {"uid": asked["uid"], "allowed": False, "status": {"message": "GPUs only on Mondays"}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    pair = issue_self_signed(["127.0.0.1"], datetime.now(UTC), timedelta(days=1))
    app = web.Application()
    app.router.add_post("/", review)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=server_context(pair)).start()
    try:
        yield {"url": f"https://127.0.0.1:{port}/", "caBundle": base64.b64encode(pair.certificate).decode()}
    finally:
        await runner.cleanup()


def webhook(name: str, client_config: Object, resource: Resource, selector: Object) -> Object:
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": ["CREATE"],
    }
    return {
        "name": name,
        "clientConfig": client_config,
        "rules": [rule],
        "objectSelector": {"matchLabels": selector},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
