"""exec, attach and port-forward: the client's connection, passed on to the node that runs the pod.

The node speaks WebSocket or SPDY with the client; the API server copies bytes. Whoever runs pods registers a Node with
the address and port of a server that has a kubelet's paths.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from isvc.apiserver.request import Call
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.logs import choose_container
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object, dig
from isvc.wire.http1 import message

_PASSED_ON = ("upgrade", "x-stream-protocol-version", "sec-websocket-key", "sec-websocket-protocol",
              "sec-websocket-version")  # fmt: skip
_ANSWERED = ("Upgrade", "X-Stream-Protocol-Version", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol")
_KUBELET_NAMES = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


async def connect(api: Api, call: Call) -> message.Response:
    pod = read.find(api, call).parse()
    path = _path(call, pod)
    node = dig(pod, "spec", "nodeName")
    if not node:
        raise BadRequest(f"pod {call.name} does not have a host assigned")
    asked = call.request.headers
    if "upgrade" not in asked:
        raise BadRequest("Upgrade request required")
    passed_on = [(each, asked[each]) for each in _PASSED_ON if each in asked]
    streams, answered = await api.nodes.switch_protocol(node, call.request.method, path, passed_on)
    headers = {name: answered[name.lower()] for name in _ANSWERED if name.lower() in answered}
    return message.Upgrade(headers, lambda tunnel: tunnel.relay(*streams))


def _path(call: Call, pod: Object) -> str:
    """Returns the kubelet's path and parameters for the client's."""
    given = parse_qsl(call.request.query_string, keep_blank_values=True)
    whose = f"{quote(call.namespace)}/{quote(call.name)}"
    if call.subresource == "portforward":
        ports = [port for name, value in given if name == "ports" for port in value.split(",") if port]
        return f"/portForward/{whose}?{urlencode([('port', port) for port in ports])}"
    container = choose_container(pod, call.request.query.get("container", ""))
    options = [(_KUBELET_NAMES[name], "1") for name in _KUBELET_NAMES if call.request.flag(name)]
    if call.subresource == "attach":
        return f"/attach/{whose}/{quote(container)}?{urlencode(options)}"
    words = [(name, value) for name, value in given if name == "command"]
    if not words:
        raise BadRequest("you must specify at least one command for the container")
    return f"/exec/{whose}/{quote(container)}?{urlencode(options + words)}"
