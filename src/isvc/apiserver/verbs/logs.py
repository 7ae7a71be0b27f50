"""`kubectl logs`: the API server asks the node that runs the pod, as Kubernetes does, and passes its answer on."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from isvc.apiserver import refusals
from isvc.apiserver.field_errors import forbidden, invalid
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Call
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.node import TEXT
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK, Object, dig

PASSED_ON = ("follow", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps", "limitBytes")
_LEAST = {"tailLines": 0, "sinceSeconds": 1, "limitBytes": 1}


async def log(api: Api, call: Call) -> Response:
    check_options(call)
    pod = read.find(api, call).parse()
    container = choose_container(pod, call.request.query.get("container", ""))
    node_name = dig(pod, "spec", "nodeName")
    if not node_name:
        return Response(b"", 200, TEXT)
    query = urlencode({name: value for name, value in call.request.query.items() if name in PASSED_ON})
    path = f"/containerLogs/{call.namespace}/{call.name}/{container}?{query}"
    return await api.nodes.pass_on(node_name, path)


def check_options(call: Call) -> None:
    """Checks that numbers are numbers, and large enough, and that times are times."""
    query, errors = call.request.query, []
    for name, least in _LEAST.items():
        number = call.request.integer(name)
        if query.get(name) and number < least:
            errors.append(invalid(name, number, f"must be greater than or equal to {least}"))
    if (moment := query.get("sinceTime", "")) and not _is_time(moment):
        raise BadRequest(f'parsing time "{moment}" as "2006-01-02T15:04:05Z07:00": cannot parse')
    if moment and query.get("sinceSeconds"):
        errors.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
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
    ephemeral = [each["name"] for each in spec.get("ephemeralContainers") or ()]
    if wanted:
        if wanted not in regular + initial + ephemeral:
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(regular) == 1:
        return str(regular[0])
    message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(regular)}]"
    if initial:
        message += f" or one of the init containers: [{' '.join(initial)}]"
    raise BadRequest(message)
