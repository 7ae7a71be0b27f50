"""Events as records: the columns and formats of KServe's agent, and the JSON that an external marshaller gets."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from isvc.pods.agent.cloudevents import Event, Origin, timestamp
from isvc.pods.stores.errors import need

_FLAG = "tlsSkipVerify"
_COLUMNS = ("url", "bytes", "contentType", "reqType", "id", "sourceUri", "inferenceService", "namespace", "component",
            "endpoint", "metadata", "annotations", "certName", _FLAG)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sender:
    """What all records of one agent have in common."""

    url: str
    origin: Origin
    ca_cert_file: str = ""
    tls_skip_verify: bool = False


def encode(form: str, events: Sequence[Event], sender: Sender) -> tuple[bytes, str]:
    """Returns an object, and how its name ends; what is neither CSV nor Parquet is JSON, as in KServe."""
    match form:
        case "csv":
            return _csv(events, sender), form
        case "parquet":
            return _parquet(events, sender), form
        case _:
            records = json_records(events, sender)
            return orjson.dumps(records if len(records) > 1 else records[0]), "json"


def json_records(events: Sequence[Event], sender: Sender) -> list[dict[str, Any]]:
    """Records as Go prints KServe's: what is empty is left out, and an address is taken apart."""
    return [_json_record(event, sender) for event in events]


def _json_record(event: Event, sender: Sender) -> dict[str, Any]:
    row = _row(event, sender)
    texts = {name: row[name] for name in _COLUMNS if name not in ("url", "sourceUri", "metadata", "annotations")}
    record = {
        "url": _go_url(sender.url),
        **texts,
        "sourceUri": _go_url(sender.origin.source),
        "metadata": dict(event.metadata),
        "annotations": dict(sender.origin.annotations),
    }
    return {name: value for name, value in record.items() if value} | {"occurrenceTime": timestamp(event.time)}


def _row(event: Event, sender: Sender) -> Mapping[str, Any]:
    origin = sender.origin
    return {
        "url": sender.url,
        "bytes": base64.b64encode(event.payload).decode(),
        "contentType": _readable(event.content_type),
        "reqType": event.kind,
        "id": _readable(event.id),
        "sourceUri": origin.source,
        "inferenceService": origin.inference_service,
        "namespace": origin.namespace,
        "component": origin.component,
        "endpoint": origin.endpoint,
        "metadata": orjson.dumps(event.metadata).decode(),
        "annotations": orjson.dumps(origin.annotations).decode(),
        "certName": sender.ca_cert_file,
        _FLAG: sender.tls_skip_verify,
    }


def _csv(events: Sequence[Event], sender: Sender) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for event in events:
        row = _row(event, sender)
        writer.writerow([str(row[name]).lower() if name == _FLAG else row[name] for name in _COLUMNS])
    return text.getvalue().encode(errors="replace")


def _parquet(events: Sequence[Event], sender: Sender) -> bytes:
    core, files = need("arro3.core", "parquet"), need("arro3.io", "parquet")
    rows = [_row(event, sender) for event in events]
    kinds = {name: core.DataType.bool() if name == _FLAG else core.DataType.utf8() for name in _COLUMNS}
    schema = core.Schema([core.Field(name, kind, nullable=False) for name, kind in kinds.items()])
    columns = [core.Array([row[name] for row in rows], kind) for name, kind in kinds.items()]
    file = io.BytesIO()
    files.write_parquet(core.Table.from_arrays(columns, schema=schema), file)
    return file.getvalue()


def _readable(text: str) -> str:
    """Returns what a client wrote as UTF-8, with what is none replaced: no format takes anything else."""
    return text.encode(errors="replace").decode()


def _go_url(url: str) -> dict[str, Any]:
    """Returns an address as Go prints its `url.URL`, which has no form of its own in JSON."""
    parts = urlsplit(url)
    return {
        "Scheme": parts.scheme, "Opaque": "", "User": {} if "@" in parts.netloc else None,
        "Host": parts.netloc.rpartition("@")[2], "Path": parts.path, "Fragment": parts.fragment,
        "RawQuery": parts.query, "RawPath": "", "RawFragment": "", "ForceQuery": False, "OmitHost": False,
    }  # fmt: skip
