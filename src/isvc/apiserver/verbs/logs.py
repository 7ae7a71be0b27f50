"""`kubectl logs`: the API server asks the node that runs the pod, as Kubernetes does, and passes its answer on."""

from __future__ import annotations

from urllib.parse import urlencode

from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.identity import Identity
from isvc.apiserver.request import Call
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, InternalError, NotFound
from isvc.kube.objects import Object, dig

PASSED_ON = ("follow", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps", "limitBytes")
TEXT = "text/plain"


async def log(api: Api, call: Call, identity: Identity) -> Response:
    pod = read.find(api, call).parse()
    container = choose_container(pod, call.request.query.get("container", ""))
    node_name = dig(pod, "spec", "nodeName")
    if not node_name:
        return Response(b"", 200, TEXT)
    query = urlencode({name: value for name, value in call.request.query.items() if name in PASSED_ON})
    url = f"{node_endpoint(api, node_name)}/containerLogs/{call.namespace}/{call.name}/{container}?{query}"
    return await _proxy(url, identity)


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
            async for data in answer.content.iter_any():
                if writer.gone.done():
                    return
                writer.write(data)
                await writer.drain()

    return Stream(pass_on, TEXT)
