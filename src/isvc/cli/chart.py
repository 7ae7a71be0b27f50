"""Renders the project's Helm chart without Helm, so that plain manifests and the chart are one source.

The chart keeps to the functions below, which mean what they mean in Helm; a test compares the result with Helm's.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any, Final

import orjson

from isvc.insight.operations import NotPossible
from isvc.kube.go_yaml import load_all
from isvc.kube.objects import Object
from isvc.serving.shipped import CHART
from isvc.serving.templates import fill
from isvc.serving.templates.functions import Function
from isvc.serving.templates.values import ANY, STRING, Maybe, Value, is_true, untyped_value

RELEASE: Final = "isvc"


class RefusedValues(NotPossible):
    """Values that the chart refuses, by its schema or in a template."""


def render(namespace: str, chosen: Mapping[str, Any]) -> list[Object]:
    """Renders the chart's objects in the order of its files, these values over its own; raises RefusedValues."""
    values, version = complete_values(chosen), importlib.metadata.version("isvc")
    root = untyped_value(
        {
            "Values": values,
            "Release": {"Name": RELEASE, "Namespace": namespace, "Service": "isvc"},
            "Chart": {"Name": RELEASE, "AppVersion": version, "Version": version},
            "Files": dict(_read(CHART.joinpath("files"), "files/")),
        }
    )
    templates = dict(sorted(_read(CHART.joinpath("templates"))))
    shared = "".join(text for name, text in templates.items() if name.endswith(".tpl"))
    return [
        obj
        for name, text in templates.items()
        if name.endswith(".yaml")
        for obj in load_all(fill(shared + text, root, FUNCTIONS, strict=False))
    ]


def _read(folder: Traversable, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the files below a folder, by their paths."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _read(each, f"{path}{each.name}/")
        else:
            yield f"{path}{each.name}", each.read_text()


def merge_values(values: Any, chosen: Any) -> Any:
    """Lays values over others as Helm does: maps key by key, where null removes a key; anything else as a whole."""
    if not isinstance(values, dict) or not isinstance(chosen, Mapping):
        return chosen
    both = {**values, **{key: merge_values(values.get(key), value) for key, value in chosen.items()}}
    return {key: value for key, value in both.items() if value is not None}


@cache
def _schema() -> Callable[..., Any]:
    """Returns what raises for values that the chart's schema does not allow."""
    import fastjsonschema

    schema = orjson.loads(CHART.joinpath("values.schema.json").read_bytes())
    check: Callable[..., Any] = fastjsonschema.compile(schema, use_default=False)
    return check


def complete_values(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Lays these values over the chart's own. Raises RefusedValues if the chart's schema does not allow them."""
    import fastjsonschema

    values: dict[str, Any] = merge_values(load_all(CHART.joinpath("values.yaml").read_text())[0], chosen)
    try:
        _schema()(values, name_prefix="values")
    except fastjsonschema.JsonSchemaValueException as error:
        raise RefusedValues(f"the chart refuses these values: {error.message}") from None
    return values


def _text(text: str) -> Value:
    return Value(STRING, text)


def _data(value: Maybe) -> Any:
    return None if value is None else value.data


def _default(otherwise: Maybe, given: Maybe = None) -> Maybe:
    return given if is_true(given) else otherwise


def _dict(*pairs: Maybe) -> Maybe:
    keys = (_data(key) for key in pairs[::2])
    return untyped_value(dict(zip(keys, map(_data, pairs[1::2]), strict=True)))


def _fail(message: Maybe) -> Maybe:
    raise RefusedValues(_data(message))


def _merge_overwrite(*maps: Maybe) -> Maybe:
    merged: Any = {}
    for each in maps:
        merged = merge_values(merged, _data(each))
    return untyped_value(merged)


def _replace_pattern(pattern: Maybe, text: Maybe, by: Maybe) -> Value:
    return _text(re.sub(_data(pattern), re.sub(r"\$\{(\d)\}", r"\\g<\1>", _data(by)), _data(text)))


def _to_json(value: Maybe) -> Value:
    """JSON is YAML, too."""
    return _text(orjson.dumps(_data(value), option=orjson.OPT_SORT_KEYS).decode())


FUNCTIONS: Final = {
    "default": Function(_default, (ANY,), ANY),
    "dict": Function(_dict, (), ANY),
    "fail": Function(_fail, (STRING,)),
    "fromYaml": Function(lambda text: untyped_value(load_all(_data(text))[0]), (STRING,)),
    "has": Function(lambda item, items: untyped_value(_data(item) in (_data(items) or ())), (ANY, ANY), ANY),
    "hasPrefix": Function(lambda prefix, text: untyped_value(_data(text).startswith(_data(prefix))), (STRING, STRING)),
    "join": Function(lambda by, items: _text(_data(by).join(_data(items))), (STRING, ANY)),
    "list": Function(lambda *items: untyped_value([_data(item) for item in items]), (), ANY),
    "mergeOverwrite": Function(_merge_overwrite, (), ANY),
    "quote": Function(lambda value: _text(orjson.dumps(str(_data(value))).decode()), (ANY,)),
    "regexReplaceAll": Function(_replace_pattern, (STRING, STRING, STRING)),
    "toJson": Function(_to_json, (ANY,)),
    "toString": Function(lambda value: _text(str(_data(value))), (ANY,)),
    "toYaml": Function(_to_json, (ANY,)),
}
