"""`kubectl logs`: the API server asks the node that runs the pod, as Kubernetes does, and passes its answer on."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from urllib.parse import urlencode

from isvc.apiserver import refusals
from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.identity import Identity
from isvc.apiserver.request import Call
from isvc.apiserver.strategy import FieldError
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, InternalError, NotFound
from isvc.kube.objects import GVK, Object, dig

PASSED_ON = ("follow", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps", "limitBytes")
TEXT = "text/plain"
_LEAST = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}


async def log(api: Api, call: Call, identity: Identity) -> Response:
    check_options(call)
    pod = read.find(api, call).parse()
    container = choose_container(pod, call.request.query.get("container", ""))
    node_name = dig(pod, "spec", "nodeName")
    if not node_name:
        return Response(b"", 200, TEXT)
    query = urlencode({name: value for name, value in call.request.query.items() if name in PASSED_ON})
    url = f"{node_endpoint(api, node_name)}/containerLogs/{call.namespace}/{call.name}/{container}?{query}"
    return await _proxy(url, identity)


def check_options(call: Call) -> None:
    """Numbers that are numbers, and large enough; times that are times."""
    query, errors = call.request.query, []
    for name, least in _LEAST.items():
        text = query.get(name, "")
        if text and not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if text and int(text) < least:
            why = f"Invalid value: {text}: must be greater than or equal to {least}"
            errors.append(FieldError("FieldValueInvalid", name, why))
    if (moment := query.get("sinceTime", "")) and not _is_time(moment):
        raise BadRequest(f'parsing time "{moment}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    if moment and query.get("sinceSeconds"):
        why = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(FieldError("FieldValueForbidden", "", why))
    if errors:
        raise refusals.invalid(GVK("", "v1", "PodLogOptions"), call.name, errors)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def choose_container(pod: Object, wanted: str) -> str:
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    regular = [each["name"] for each in spec.get("containers") or ()]
    initial = [each["name"] for each in spec.get("initContainers") or ()]
    if wanted:
        if wanted not in regular + initial:
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(regular) == 1:
        return str(regular[0])
    told = f"a container name must be specified for pod {name}, choose one of: [{' '.join(regular)}]"
    if initial:
        told += f" or one of the init containers: [{' '.join(initial)}]"
    raise BadRequest(told)


def node_endpoint(api: Api, name: str) -> str:
    entry = api.store.get("nodes", "", name)
    node = entry.parse() if entry else {}
    port = dig(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
    addresses = {each["type"]: each["address"] for each in dig(node, "status", "addresses") or ()}
    address = addresses.get("InternalIP") or addresses.get("Hostname")
    if not port or not address:
        raise NotFound(f'nodes "{name}" has no endpoint to ask for logs')
    return f"https://{address}:{port}"


async def _proxy(url: str, identity: Identity) -> Response:
    import aiohttp

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=identity.client_context()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        headers={"Authorization": f"Bearer {identity.kubelet_token}"},
    )
    try:
        answer = await session.get(url)
    except aiohttp.ClientError as error:
        await session.close()
        raise InternalError(f"Internal error occurred: the node did not answer: {error}") from None
    if answer.status != 200:
        text = (await answer.text()).strip()
        await session.close()
        raise BadRequest(text) if answer.status < 500 else InternalError(text)

    async def pass_on(writer: Writer) -> None:
        async with session:
            while True:
                reading = asyncio.ensure_future(answer.content.readany())
                await asyncio.wait((reading, writer.gone), return_when=asyncio.FIRST_COMPLETED)
                if writer.gone.done():
                    reading.cancel()  # a quiet log may have no more to say for hours
                    return
                if not (data := reading.result()):
                    return
                writer.write(data)
                await writer.drain()

    return Stream(pass_on, TEXT)
