"""Renders the project's Helm chart without Helm, so that plain manifests and the chart are one source.

The chart keeps to the functions below, which mean what they mean in Helm; a test compares the result with Helm's.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from isvc.kube.objects import Object
from isvc.serving.templates import fill
from isvc.serving.templates.functions import Function
from isvc.serving.templates.values import ANY, STRING, Maybe, Value, is_true, untyped

RELEASE: Final = "isvc"


class RefusedValues(Exception):
    """Values that the chart refuses, by its schema or in a template."""


def folder() -> Path:
    """Returns the folder of the chart: as it ships in the package, else as it lies in the checkout."""
    shipped = Path(__file__).with_name("shipped_chart")
    return shipped if shipped.exists() else Path(__file__).parents[3] / "charts" / "isvc"


def render(namespace: str, chosen: Mapping[str, Any]) -> list[Object]:
    """Renders the chart's objects in the order of its files, these values over its own; raises RefusedValues."""
    chart, values = folder(), complete_values(chosen)
    version = importlib.metadata.version("isvc")
    release = {"Name": RELEASE, "Namespace": namespace, "Service": "isvc"}
    root = untyped({"Values": values, "Release": release, "Chart": {"AppVersion": version, "Version": version}})
    shared = "".join(path.read_text() for path in sorted((chart / "templates").glob("_*.tpl")))
    return [
        obj
        for path in sorted((chart / "templates").glob("*.yaml"))
        for obj in _load_all(fill(shared + path.read_text(), root, FUNCTIONS, strict=False))
    ]


def merge_values(values: Any, chosen: Any) -> Any:
    """Lays values over others as Helm does: maps key by key, where null removes a key; anything else as a whole."""
    if not isinstance(values, dict) or not isinstance(chosen, Mapping):
        return chosen
    both = {**values, **{key: merge_values(values.get(key), value) for key, value in chosen.items()}}
    return {key: value for key, value in both.items() if value is not None}


def complete_values(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Lays these values over the chart's own. Raises RefusedValues if the chart's schema does not allow them."""
    import fastjsonschema

    values: dict[str, Any] = merge_values(next(_load_all((folder() / "values.yaml").read_text())), chosen)
    schema = orjson.loads((folder() / "values.schema.json").read_bytes())
    try:
        fastjsonschema.compile(schema, use_default=False)(values, name_prefix="values")
    except fastjsonschema.JsonSchemaValueException as error:
        raise RefusedValues(f"the chart refuses these values: {error.message}") from None
    return values


def _load_all(text: str) -> Iterator[Any]:
    documents = yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return (document for document in documents if document)


def _text(text: str) -> Value:
    return Value(STRING, text)


def _data(value: Maybe) -> Any:
    return None if value is None else value.data


def _default(otherwise: Maybe, given: Maybe = None) -> Maybe:
    return given if is_true(given) else otherwise


def _dict(*pairs: Maybe) -> Maybe:
    keys = (_data(key) for key in pairs[::2])
    return untyped(dict(zip(keys, map(_data, pairs[1::2]), strict=True)))


def _fail(message: Maybe) -> Maybe:
    raise RefusedValues(_data(message))


FUNCTIONS: Final = {
    "default": Function(_default, (ANY,), ANY),
    "dict": Function(_dict, (), ANY),
    "fail": Function(_fail, (STRING,)),
    "has": Function(lambda item, items: untyped(_data(item) in (_data(items) or ())), (ANY, ANY), ANY),
    "join": Function(lambda by, items: _text(_data(by).join(_data(items))), (STRING, ANY)),
    "list": Function(lambda *items: untyped([_data(item) for item in items]), (), ANY),
    "quote": Function(lambda value: _text(orjson.dumps(str(_data(value))).decode()), (ANY,)),
    "toJson": Function(lambda value: _text(orjson.dumps(_data(value), option=orjson.OPT_SORT_KEYS).decode()), (ANY,)),
}
