"""GET: one object or a list, in the form that the client accepts."""

from __future__ import annotations

import orjson

from isvc.apiserver import forms, refusals
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Call
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.verbs import listing
from isvc.apiserver.verbs.pipeline import Api, all_from_stored, from_stored, to_client


def find(api: Api, call: Call) -> Entry:
    entry = api.store.get(call.description.collection, call.namespace, call.name)
    if entry is None:
        raise refusals.not_found(call.description.resource, call.name)
    return entry


async def get(api: Api, call: Call) -> Response:
    entry = find(api, call)
    form = forms.requested_form(call.request)
    if form == forms.OBJECT:
        return Response(await to_client(call.description, entry))
    obj = await from_stored(call.description, entry)
    return Response.json(forms.one_as(form, call, obj))


async def list_objects(api: Api, call: Call) -> Response:
    selection = await listing.select(api, call)
    entries, meta = selection.page()
    form = forms.requested_form(call.request)
    if form == forms.OBJECT:
        items = b",".join(await listing.items_as_bytes(call.description, entries))
        envelope = orjson.dumps(selection.envelope([], meta))
        return Response(envelope[:-2] + items + b"]}")
    if form == forms.METADATA and call.description.stored == call.description.resource:
        objects = [{"metadata": entry.parse_metadata()} for entry in entries]  # definitions are large: 20 MB for all
    else:
        objects = await all_from_stored(call.description, entries)
    return Response.json(forms.many_as(form, call, objects, meta))
