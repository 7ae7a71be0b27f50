"""GET on a collection: selectors, pages, and lists as of an earlier revision."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from isvc.apiserver.request import Call
from isvc.apiserver.resources.description import Description
from isvc.apiserver.store.entry import Entry, encode
from isvc.apiserver.verbs.list_options import check_list
from isvc.apiserver.verbs.pipeline import Api, all_from_stored, to_client
from isvc.kube.errors import BadRequest, Gone, Timeout
from isvc.kube.objects import Object
from isvc.kube.selectors import FieldSelector, LabelSelector, SelectorError

ALWAYS_SELECTABLE = ("metadata.name", "metadata.namespace")
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)


_NOW = -1  # in a token: the list as it is when it goes on


class Expired(Gone):
    """The list cannot go on as of its revision; the token goes on with what there is now."""

    def __init__(self, token: str) -> None:
        super().__init__(_EXPIRED)
        self._token = token

    def status(self) -> Object:
        return {**super().status(), "metadata": {"continue": self._token}}


@dataclass(frozen=True, slots=True)
class Filter:
    """Label and field selectors of one request."""

    labels: LabelSelector
    fields: FieldSelector
    description: Description

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def test(self) -> Callable[[Entry], bool]:
        """Returns a quick predicate; objects are parsed only for fields beyond name and namespace."""
        labels, fields = self.labels, self.fields
        if not fields:
            return (lambda entry: labels.matches(entry.labels)) if labels else (lambda _: True)
        plain = all(path in ALWAYS_SELECTABLE for path, _, _ in fields.terms)

        def matches(entry: Entry) -> bool:
            if not labels.matches(entry.labels):
                return False
            if plain:
                return fields.matches({"metadata": {"name": entry.name, "namespace": entry.namespace}})
            return fields.matches(self.description.strategy.for_selection(entry.parse()))

        return matches


def filter_of(call: Call) -> Filter:
    query = call.request.query
    try:
        labels = LabelSelector.parse(query.get("labelSelector", ""))
    except SelectorError as error:
        raise BadRequest(f"unable to parse requirement: {error}") from None
    try:
        fields = FieldSelector.parse(query.get("fieldSelector", ""))
    except SelectorError as error:
        raise BadRequest(str(error)) from None
    for path, _, _ in fields.terms:
        if path not in ALWAYS_SELECTABLE and path not in call.description.selectable:
            raise BadRequest(
                f"field label not supported: {path}"
                if call.description.selectable or call.description.custom
                else f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    return Filter(labels, fields, call.description)


@dataclass(slots=True)
class Selection:
    """What a list request selects, before it is cut into pages."""

    call: Call
    entries: list[Entry]
    rv: int
    filtered: bool
    limit: int
    start: tuple[str, str] | None = None

    def page(self) -> tuple[list[Entry], Object]:
        """Returns the entries to send, and the list's metadata."""
        entries = self.entries
        if self.start is not None:
            entries = [entry for entry in entries if (entry.namespace, entry.name) > self.start]
        meta: Object = {"resourceVersion": str(self.rv)}
        if self.call.description.custom:
            meta["continue"] = ""
        if self.limit and len(entries) > self.limit:
            rest = len(entries) - self.limit
            entries = entries[: self.limit]
            meta["continue"] = _token(self.rv, entries[-1].namespace, entries[-1].name)
            if not self.filtered:
                meta["remainingItemCount"] = rest
        return entries, meta

    def envelope(self, items: list[Object], meta: Object) -> Object:
        description = self.call.description
        return {
            "kind": description.list_kind_name,
            "apiVersion": description.gvk.api_version,
            "metadata": meta,
            "items": items,
        }


async def select(api: Api, call: Call) -> Selection:
    query = call.request.query
    check_list(query)
    chosen = filter_of(call)
    limit = max(call.request.integer("limit"), 0)
    if query.get("resourceVersion") == "0" and not query.get("continue"):
        limit = 0  # such a list comes whole, as from kube-apiserver's watch cache
    at, start = _moment(api, query)
    collection = call.description.collection
    try:
        entries = api.store.list(collection, call.namespace, at)
    except Gone:
        if start is not None:
            raise Expired(_token(_NOW, *start)) from None
        raise
    rv = api.store.rv if at is None else at
    if chosen:
        matches = chosen.test()
        entries = [entry for entry in entries if matches(entry)]
    return Selection(call, entries, rv, bool(chosen), limit, start)


def _moment(api: Api, query: dict[str, str]) -> tuple[int | None, tuple[str, str] | None]:
    """Returns the revision to list at (None: now), and the key after which to go on."""
    if token := query.get("continue"):
        if query.get("resourceVersion") not in (None, "", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        rv, start = _parse_token(token)
        return (None if rv == _NOW else rv), start
    match = query.get("resourceVersionMatch", "")
    rv = _revision(query.get("resourceVersion", ""))
    if rv > api.store.rv:
        raise too_new(rv, api.store.rv)
    if match == "Exact" or (rv and not match and query.get("limit") not in (None, "", "0")):
        return rv, None
    return None, None


def too_new(rv: int, current: int) -> Timeout:
    """Refuses a revision that the server has not reached."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {rv}, current: {current}"
    return Timeout(message, details={"causes": [cause], "retryAfterSeconds": 1})


def _revision(text: str) -> int:
    if text and not re.fullmatch(r"\d{1,19}", text, re.ASCII):
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise BadRequest(f"invalid resource version: resourceVersion: {why}")
    return int(text or 0)


def _token(rv: int, namespace: str, name: str) -> str:
    """Says where to go on: after an object, in the list as it was at a revision."""
    text = orjson.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": [namespace, name]})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _parse_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        value = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = value["start"]
        return int(value["rv"]), (str(namespace), str(name))
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise BadRequest(
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
        ) from None


async def items_as_bytes(description: Description, entries: list[Entry]) -> list[bytes]:
    """Returns each object as clients see it in a list: built-in kinds leave out kind and apiVersion there."""
    if description.stored == description.resource:
        raws = [await to_client(description, entry) for entry in entries]
    else:
        raws = [encode(obj) for obj in await all_from_stored(description, entries)]
    if description.custom:
        return raws
    prefix = len(f'{{"kind":"{description.gvk.kind}","apiVersion":"{description.gvk.api_version}",')
    return [b"{" + raw[prefix:] for raw in raws]
