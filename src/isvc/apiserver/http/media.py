"""Which media type an answer has, and answers in another than JSON.

Everything is answered as JSON, which is how objects are stored. Whoever prefers YAML, or takes nothing but Kubernetes'
protobuf, gets that made of it. Clients that take both protobuf and JSON, as client-go does for built-in kinds, get
JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable
from typing import Any, Final

import orjson

from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.protobuf import encode, encode_event
from isvc.apiserver.request import Request
from isvc.kube.errors import NotAcceptable
from isvc.wire.http1 import message
from isvc.wire.http1.message import JSON

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_ANY = ("*/*", "application/*", JSON)


def choose_media_type(accept: str) -> str:
    """Returns the media type to answer with."""
    if "yaml" not in accept and "protobuf" not in accept:
        return JSON
    found = [media for media, _ in clauses(accept)]
    textual = next((media for media in found if media == YAML or media in _ANY), None)
    if textual is not None:
        return YAML if textual == YAML else JSON
    return PROTOBUF if PROTOBUF in found else JSON


def clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Returns media types with their parameters, those that the client prefers first."""
    found = []
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        found.append((media, dict(each.split("=", 1) for each in parameters if "=" in each)))
    return sorted(found, key=lambda each: -_quality(each[1].get("q", "")))


def not_acceptable(*accepted: str) -> NotAcceptable:
    listed = ", ".join(accepted or (JSON, YAML, PROTOBUF))
    return NotAcceptable(f"only the following media types are accepted: {listed}", details={})


def _quality(text: str) -> float:
    try:
        return float(text or 1)
    except ValueError:
        return 1.0


def encode_answer(
    answer: message.Response | Awaitable[message.Response], request: Request
) -> message.Response | Awaitable[message.Response]:
    """Returns the answer in the media type that the client prefers; what another server answered stays as it is."""
    media = choose_media_type(request.accept)
    if media == JSON or (request.target is not None and request.target.subresource == "proxy"):
        return answer
    if isinstance(answer, message.Response):
        return _as(media, answer)
    return _later(media, answer)


async def _later(media: str, answer: Awaitable[message.Response]) -> message.Response:
    return _as(media, await answer)


def _as(media: str, response: message.Response) -> message.Response:
    if not response.content_type.startswith(JSON) or isinstance(response, message.Upgrade):
        return response
    if isinstance(response, message.Stream):
        return _stream(media, response)
    kind = response.content_type.replace(JSON, media)
    return Response(_dump(media, orjson.loads(response.body)), response.status, kind, response.headers)


def _dump(media: str, value: Any) -> bytes:
    return to_yaml(value) if media == YAML else encode(value)


def to_yaml(value: Any) -> bytes:
    from isvc.kube.go_yaml import dump

    return dump(value, sort_keys=True).encode()


def _stream(media: str, response: message.Stream) -> message.Response:
    if media == YAML:
        raise not_acceptable(f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
    return Stream(lambda writer: response.produce(_Frames(writer)), f"{PROTOBUF};stream=watch")


class _Frames:
    """Writer of a watch whose lines become protobuf messages, each after its length."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.backlog, self.drain, self.gone = writer.backlog, writer.drain, writer.gone

    def write(self, data: bytes) -> None:
        events = [encode_event(orjson.loads(line)) for line in data.splitlines()]
        self._writer.write(b"".join(struct.pack(">I", len(event)) + event for event in events))
