"""Definitions whose equal parts are one."""

from __future__ import annotations

from typing import Any

import orjson

from isvc.api.kinds.crds import crds
from isvc.apiserver.crd.sharing import share_parts


def parts(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(part for each in inner if isinstance(each, dict | list) for part in parts(each))]


def test_a_definition_stays_what_it_is_and_no_two_of_its_parts_are_equal():
    for crd in crds(described=True):
        written = orjson.dumps(crd)
        shared = share_parts(orjson.loads(written))
        assert orjson.dumps(shared) == written
        distinct = {id(part): orjson.dumps(part) for part in parts(shared)}
        assert len(set(distinct.values())) == len(distinct)


def test_what_is_alike_but_not_equal_stays_apart():
    given = {"a": {"default": 1}, "b": {"default": True}, "c": {"default": 1.0}, "d": {}, "e": [], "f": {"g": {}}}
    shared = share_parts(orjson.loads(orjson.dumps(given)))
    assert orjson.dumps(shared) == orjson.dumps(given)
    assert shared["d"] is shared["f"]["g"]
