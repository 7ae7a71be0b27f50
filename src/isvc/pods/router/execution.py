"""The four kinds of nodes, and how a request goes through them.

A `Call` is what reaches a service; everything else is decided here, without the network.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from isvc.pods.router import gjson
from isvc.pods.router.graph import RESPONSE, ROOT, Graph, Node, Step

_T = TypeVar("_T")
log = logging.getLogger("isvc.pods.router")

# Far more than a graph that means it: nodes that lead to each other in a circle come to an end here.
_MAX_DEPTH = 100


class RoutingError(Exception):
    """The graph has no answer for a request."""

    def __init__(self, cause: str, status: int = 500) -> None:
        super().__init__(cause)
        self.status = status

    def body(self) -> bytes:
        return orjson.dumps({"error": "Failed to process request", "cause": str(self)})


@dataclass(frozen=True, slots=True)
class Answer:
    body: bytes
    status: int

    @property
    def is_success(self) -> bool:
        return 200 <= self.status <= 299


Call = Callable[[str, bytes], Awaitable[Answer]]


async def run(graph: Graph, request: bytes, call: Call) -> Answer:
    return await _Run(graph, call).node(ROOT, request, 0)


class _Run:
    """One request's way through a graph."""

    def __init__(self, graph: Graph, call: Call) -> None:
        self.graph = graph
        self.call = call

    async def node(self, name: str, request: bytes, depth: int) -> Answer:
        if depth > _MAX_DEPTH:
            raise RoutingError(f"node {name} is reached by more than {_MAX_DEPTH} nodes: they lead in a circle")
        node = self.graph.nodes.get(name, Node())
        match node.router_type:
            case "Sequence":
                return await self._sequence(node.steps, request, depth)
            case "Splitter":
                return await self._step(_by_weight(node.steps), request, depth)
            case "Switch":
                return await self._step(_by_condition(node.steps, request), request, depth)
            case "Ensemble":
                return await self._ensemble(node.steps, request, depth)
        raise RoutingError(f"invalid route type: {node.router_type}")

    async def _step(self, step: Step, request: bytes, depth: int) -> Answer:
        if step.node_name:
            try:
                answer = await self.node(step.node_name, request, depth + 1)
            except RoutingError as error:
                raise RoutingError(str(error)) from error  # a switch without a match is a 404 at the root alone
        else:
            answer = await self.call(step.service_url, request)
        if step.is_hard and not answer.is_success:
            log.info("step %s, a hard dependency, answered %d", step.step_name or step.service_url, answer.status)
        return answer

    async def _sequence(self, steps: Sequence[Step], request: bytes, depth: int) -> Answer:
        answer = Answer(b"", 0)
        for index, step in enumerate(steps):
            given = answer.body if step.data == RESPONSE and index > 0 else request
            if step.map_predictions_to_instances:
                given = _predictions_as_instances(given)
            if step.condition and not _holds(step.condition, answer.body):
                return Answer(answer.body, 200)
            answer = await self._step(step, given, depth)
            if step.is_hard and not answer.is_success:
                return answer
        return answer

    async def _ensemble(self, steps: Sequence[Step], request: bytes, depth: int) -> Answer:
        """Runs all at once; an error of any of them is the answer, and so is the first hard one in order that fails."""
        members = [asyncio.create_task(self._member(step, request, depth)) for step in steps]
        together: dict[str, Any] = {}
        try:
            for index, step in enumerate(steps):
                answer, body = await _result_or_first_error(members[index], members)
                if step.is_hard and not answer.is_success:
                    return Answer(_encode(body), answer.status)
                together[step.step_name or str(index)] = body
        finally:
            for member in members:
                member.cancel()
            await asyncio.gather(*members, return_exceptions=True)
        return Answer(_encode(together), 200)

    async def _member(self, step: Step, request: bytes, depth: int) -> tuple[Answer, Any]:
        """Returns the answer of one step, and the object that it is."""
        answer = await self._step(step, request, depth)
        body = _parse(answer.body)
        if body is not None and not isinstance(body, dict):
            raise RoutingError(f"{step.step_name or step.service_url} answered JSON that is no object")
        return answer, body


async def _result_or_first_error(task: asyncio.Task[_T], group: Sequence[asyncio.Task[_T]]) -> _T:
    running = set(group)
    while not task.done():
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for other in done:
            other.result()
    return task.result()


def _by_weight(steps: Sequence[Step]) -> Step:
    point, end = secrets.randbelow(100), 0
    for step in steps:
        end += step.weight
        if point < end:
            return step
    raise RoutingError("no route was selected by the splitter")


def _by_condition(steps: Sequence[Step], request: bytes) -> Step:
    try:
        document = gjson.parse(request)
    except gjson.NotJson:
        document = gjson.MISSING
    for step in steps:
        if document is not gjson.MISSING and gjson.exists(document, step.condition):
            return step
    raise RoutingError("None of the routes matched with the switch condition", 404)


def _holds(condition: str, answer: bytes) -> bool:
    try:
        return gjson.exists(gjson.parse(answer), condition)
    except gjson.NotJson:
        raise RoutingError("invalid response") from None


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
