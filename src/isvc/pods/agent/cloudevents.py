"""Requests and answers as CloudEvents, sent in HTTP's binary mode: attributes are headers, the payload is the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson

REQUEST = "org.kubeflow.serving.inference.request"
RESPONSE = "org.kubeflow.serving.inference.response"


@dataclass(frozen=True, slots=True)
class Origin:
    """What all events of one agent have in common."""

    source: str
    inference_service: str = ""
    namespace: str = ""
    component: str = ""
    endpoint: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    id: str
    time: datetime
    content_type: str
    payload: bytes
    metadata: Mapping[str, Sequence[str]]  # headers of the request that were asked for
    trace: str = ""  # the request's traceparent

    @property
    def kind(self) -> str:
        """`request` or `response`."""
        return self.type.rpartition(".")[2]

    def headers(self, origin: Origin, now: datetime) -> dict[str, str]:
        attributes = {
            "specversion": "1.0",
            "id": self.id,
            "type": self.type,
            "source": origin.source,
            "time": timestamp(self.time),
            "recordedtime": timestamp(now),
            "inferenceservicename": origin.inference_service,
            "namespace": origin.namespace,
            "component": origin.component,
            "endpoint": origin.endpoint,
            "metadata": _json(self.metadata),
        }
        if origin.annotations:
            attributes["annotations"] = _json(origin.annotations)
        if self.trace:
            attributes["traceparent"] = self.trace  # the extension for distributed tracing
        headers = {f"Ce-{name.capitalize()}": _header_value(value) for name, value in attributes.items()}
        return headers | ({"Content-Type": self.content_type} if self.content_type else {})


def timestamp(time: datetime) -> str:
    """Writes RFC 3339 in UTC, without zeros at the end of the fraction."""
    text = time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{text}Z"


def _json(document: object) -> str:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()


def _header_value(text: str) -> str:
    """Escapes a value so that it can break no line, whoever wrote it."""
    return "".join(char if " " <= char < "\x7f" else _percent_encoded(char) for char in text)


def _percent_encoded(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode(errors="surrogateescape"))
