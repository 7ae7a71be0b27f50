"""GET of metrics.k8s.io: what pods and nodes use, asked of the kubelet of every node concerned."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from isvc.apiserver import forms, refusals
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import Call
from isvc.apiserver.store.entry import Entry, Lifetime
from isvc.apiserver.verbs.listing import filter_of
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, InternalError, NotFound
from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Notation, Quantity
from isvc.kube.resource import NODES, POD_METRICS, PODS
from isvc.wire.turns import room_in_turn


class _Placement(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    """What of a pod leads to its figures: all that is read where a thousand are asked for."""

    metadata: Lifetime
    spec: _Placement


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode


async def get(api: Api, call: Call) -> Response:
    entry = api.store.get(_measured_collection(call), call.namespace, call.name)
    found = await _metrics(api, call, [entry] if entry else [])
    if not found:
        raise refusals.not_found(call.description.resource, call.name)
    form = forms.requested_form(call.request)
    return Response.json(found[0] if form == forms.OBJECT else forms.one_as(form, call, found[0]))


async def list_metrics(api: Api, call: Call) -> Response:
    matches = filter_of(call).test()
    entries = [entry for entry in api.store.list(_measured_collection(call), call.namespace) if matches(entry)]
    items, resource = await _metrics(api, call, entries), call.description.resource
    form = forms.requested_form(call.request)
    if form != forms.OBJECT:
        return Response.json(forms.many_as(form, call, items, {}))
    kind = {"kind": call.description.list_kind_name, "apiVersion": resource.api_version}
    return Response.json({**kind, "metadata": {}, "items": items})


def _measured_collection(call: Call) -> str:
    """Returns the collection of what is measured."""
    return str(PODS if call.description.resource == POD_METRICS else NODES)


async def _metrics(api: Api, call: Call, entries: Sequence[Entry]) -> list[Object]:
    """Returns those of the objects that have been measured."""
    if call.description.resource == POD_METRICS:
        return await _metrics_of_pods(api, entries)
    summaries = await _summaries(api, {entry.name for entry in entries})
    return [
        {**_head("NodeMetrics", entry, summary["node"]), "usage": _usage(summary["node"])}
        for entry in entries
        if (summary := summaries.get(entry.name)) and "cpu" in summary["node"]
    ]


async def _metrics_of_pods(api: Api, entries: Sequence[Entry]) -> list[Object]:
    pods = [_decode_pod(entry.raw) for entry in entries]
    summaries = await _summaries(api, {pod.spec.node_name for pod in pods if pod.spec.node_name})
    measured = {dig(each, "podRef", "uid"): each for summary in summaries.values() for each in summary["pods"]}
    found = []
    for entry, pod in zip(entries, pods, strict=True):
        await room_in_turn()  # there may be thousands
        figures = measured.get(pod.metadata.uid)
        if figures and figures["containers"]:
            found.append(_pod_metrics(entry, figures))
    return found


async def _summaries(api: Api, nodes: set[str]) -> Mapping[str, Object]:
    """Returns what each node says of itself and its pods; a node that does not answer says nothing."""
    names = sorted(nodes)
    answers = await asyncio.gather(*(_summary(api, name) for name in names))
    return {name: answer for name, answer in zip(names, answers, strict=True) if answer is not None}


async def _summary(api: Api, node: str) -> Object | None:
    try:
        return await api.nodes.read_json(node, "/stats/summary")
    except (BadRequest, InternalError, NotFound):
        return None


def _pod_metrics(pod: Entry, figures: Object) -> Object:
    containers = [{"name": each["name"], "usage": _usage(each)} for each in figures["containers"]]
    return {**_head("PodMetrics", pod, figures["containers"][0]), "containers": containers}


def _head(kind: str, measured: Entry, figures: Object) -> Object:
    cpu = figures["cpu"]
    named = {"name": measured.name, "namespace": measured.namespace, "labels": measured.labels}
    metadata = {key: value for key, value in named.items() if value}
    return {
        "kind": kind,
        "apiVersion": POD_METRICS.api_version,
        "metadata": {**metadata, "creationTimestamp": now()},
        "timestamp": cpu["time"],
        "window": f"{cpu.get('windowSeconds', 30)}s",
    }


def _usage(figures: Object) -> Object:
    return _quantities(figures["cpu"]["usageNanoCores"], figures["memory"]["workingSetBytes"] // 1024 * 1024)


@lru_cache(maxsize=256)  # of many pods most use nothing
def _quantities(nanocores: int, memory: int) -> Object:
    return {"cpu": str(Quantity(nanocores)), "memory": str(Quantity(memory * 10**9, Notation.BINARY))}
