"""The four kinds of nodes, and how a request goes through them.

A `Call` is what reaches a service; everything else is decided here, without the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson

from isvc.pods.router import gjson
from isvc.pods.router.graph import RESPONSE, ROOT, Graph, Node, Step
from isvc.pods.router.metrics import Metrics

_T = TypeVar("_T")
log = logging.getLogger("isvc.pods.router")

# Far more than a graph that means it: nodes that lead to each other in a circle come to an end here.
_MAX_DEPTH = 100
# Nodes that lead to several others at once may be far too many long before they are too deep.
_MOST_STEPS = 10_000


class RoutingError(Exception):
    """The graph has no answer for a request."""

    def __init__(self, cause: str, status: int = 500) -> None:
        super().__init__(cause)
        self.status = status

    def body(self) -> bytes:
        return orjson.dumps({"error": "Failed to process request", "cause": str(self)})


class Stream(Protocol):
    """A body that is still on its way, with the headers that describe it."""

    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A body, or of the last step perhaps a stream in its place."""

    body: bytes
    status: int
    stream: Stream | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status <= 299


class Call(Protocol):
    """Asks a step's service. `last` allows a stream; `retried` is called for each try after the first."""

    async def __call__(self, step: Step, body: bytes, *, last: bool, retried: Callable[[], None]) -> Answer: ...


async def run(graph: Graph, request: bytes, call: Call, metrics: Metrics) -> Answer:
    return await _Run(graph, call, metrics).node(ROOT, request, 0, last=True)


class _Run:
    """One request's way through a graph. `last` says that an answer is the graph's: nobody here looks at its body."""

    def __init__(self, graph: Graph, call: Call, metrics: Metrics) -> None:
        self.graph = graph
        self.call = call
        self.metrics = metrics
        self.steps = 0

    async def node(self, name: str, request: bytes, depth: int, *, last: bool) -> Answer:
        if depth > _MAX_DEPTH:
            raise RoutingError(f"node {name} is reached by more than {_MAX_DEPTH} nodes: they lead in a circle")
        with self.metrics.node(name) as outcome:
            answer = await self._node(name, request, depth, last=last)
            outcome.code = str(answer.status)
        return answer

    async def _node(self, name: str, request: bytes, depth: int, *, last: bool) -> Answer:
        node = self.graph.nodes.get(name, Node())
        steps = [_Place(name, step_name, step, depth) for step_name, step in node.named_steps]
        match node.router_type:
            case "Sequence":
                return await self._sequence(steps, request, last=last)
            case "Splitter":
                return await self._step(_by_weight(steps), request, last=last)
            case "Switch":
                return await self._step(_by_condition(steps, request), request, last=last)
            case "Ensemble":
                return await self._ensemble(steps, request)
        raise RoutingError(f"invalid route type: {node.router_type}")

    async def _step(self, place: _Place, request: bytes, *, last: bool) -> Answer:
        step = place.step
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise RoutingError(f"the request takes more than {_MOST_STEPS} steps: nodes lead to others in a circle")
        with self.metrics.step(place.node, place.name) as outcome:
            if step.node_name:
                try:
                    answer = await self.node(step.node_name, request, place.depth + 1, last=last)
                except RoutingError as error:
                    raise RoutingError(str(error)) from error  # a switch without a match is a 404 at the root alone
            else:
                retried = self.metrics.retries.labels(place.node, place.name).inc
                answer = await self.call(step, request, last=last, retried=retried)
            outcome.code = str(answer.status)
        if step.is_hard and not answer.is_success:
            log.info("step %s, a hard dependency, answered %d", step.step_name or step.service_url, answer.status)
        return answer

    async def _sequence(self, places: Sequence[_Place], request: bytes, *, last: bool) -> Answer:
        answer = Answer(b"", 0)
        for index, place in enumerate(places):
            step = place.step
            given = answer.body if step.data == RESPONSE and index > 0 else request
            if step.map_predictions_to_instances:
                given = _predictions_as_instances(given)
            if step.condition and not _holds(step.condition, answer.body):
                return Answer(answer.body, 200)
            answer = await self._step(place, given, last=last and index == len(places) - 1)
            if step.is_hard and not answer.is_success:
                return answer
        return answer

    async def _ensemble(self, places: Sequence[_Place], request: bytes) -> Answer:
        """Runs all at once; an error of any of them is the answer, and so is the first hard one in order that fails."""
        members = [asyncio.create_task(self._member(place, request)) for place in places]
        together: dict[str, Any] = {}
        try:
            for place, member in zip(places, members, strict=True):
                answer, body = await _result_or_first_error(member, members)
                if place.step.is_hard and not answer.is_success:
                    return Answer(_encode(body), answer.status)
                together[place.name] = body
        finally:
            for member in members:
                member.cancel()
            await asyncio.gather(*members, return_exceptions=True)
        return Answer(_encode(together), 200)

    async def _member(self, place: _Place, request: bytes) -> tuple[Answer, Any]:
        """Returns the answer of one step, and the object that it is."""
        answer = await self._step(place, request, last=False)
        body = _parse(answer.body)
        if body is not None and not isinstance(body, dict):
            raise RoutingError(f"{place.step.step_name or place.step.service_url} answered JSON that is no object")
        return answer, body


@dataclass(frozen=True, slots=True)
class _Place:
    """A step, with the node that it belongs to, its name there, and by how many nodes that was reached."""

    node: str
    name: str
    step: Step
    depth: int


async def _result_or_first_error(task: asyncio.Task[_T], group: Sequence[asyncio.Task[_T]]) -> _T:
    running = set(group)
    while not task.done():
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for other in done:
            other.result()
    return task.result()


def _by_weight(places: Sequence[_Place]) -> _Place:
    point, end = secrets.randbelow(100), 0
    for place in places:
        end += place.step.weight
        if point < end:
            return place
    raise RoutingError("no route was selected by the splitter")


def _by_condition(places: Sequence[_Place], request: bytes) -> _Place:
    try:
        document = gjson.parse(request)
    except gjson.NotJson:
        document = gjson.MISSING
    for place in places:
        if document is not gjson.MISSING and _leads_somewhere(document, place.step.condition):
            return place
    raise RoutingError("None of the routes matched with the switch condition", 404)


def _holds(condition: str, answer: bytes) -> bool:
    try:
        return _leads_somewhere(gjson.parse(answer), condition)
    except gjson.NotJson:
        raise RoutingError("invalid response") from None


def _leads_somewhere(document: Any, condition: str) -> bool:
    try:
        return gjson.exists(document, condition)
    except RecursionError:
        raise RoutingError(f"the document is nested too deeply for the condition {condition}") from None


def _predictions_as_instances(request: bytes) -> bytes:
    """Asks the next model about what the last predicted; nothing else of the document is passed on."""
    try:
        document = orjson.loads(request)
    except orjson.JSONDecodeError:
        return request
    if not isinstance(document, dict) or not isinstance(document.get("instances", []), list | None):
        return request
    predictions = document.get("predictions")
    return _encode({"instances": predictions}) if isinstance(predictions, list) and predictions else request


def _parse(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RoutingError(str(error)) from None


def _encode(document: Any) -> bytes:
    try:
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:  # nested too deeply
        raise RoutingError(str(error)) from None
