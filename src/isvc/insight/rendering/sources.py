"""Where each field of a merged object comes from: the first of several layers that says it.

Lists of named things are matched by name, as merging does; other lists item by item, wherever in a layer's list an item
stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Layer(NamedTuple):
    """What one source says, the strongest first."""

    source: str
    value: Any


class Field(NamedTuple):
    path: str
    value: Any
    source: str


def fields(merged: Any, layers: Sequence[Layer], otherwise: str, path: str = "") -> Iterator[Field]:
    """Yields every leaf of the merged value, with the strongest layer that has it; `otherwise` where none does."""
    if isinstance(merged, dict) and merged:
        for key, value in merged.items():
            inner = [Layer(layer.source, layer.value.get(key)) for layer in layers if isinstance(layer.value, dict)]
            yield from fields(value, _with_value(inner), otherwise, f"{path}.{key}" if path else str(key))
    elif isinstance(merged, list) and merged:
        for number, item in enumerate(merged):
            name = item.get("name") if isinstance(item, dict) else None
            inner = [Layer(layer.source, _matching(layer.value, item, name)) for layer in layers]
            yield from fields(
                item, _with_value(inner) or _template_layers(layers, item), otherwise, f"{path}[{name or number}]"
            )
    else:
        yield Field(path, merged, layers[0].source if layers else otherwise)


def _with_value(layers: Sequence[Layer]) -> list[Layer]:
    return [layer for layer in layers if layer.value is not None]


def _matching(items: Any, item: Any, name: str | None) -> Any:
    if not isinstance(items, list):
        return None
    if name is not None:
        return next((each for each in items if isinstance(each, dict) and each.get("name") == name), None)
    return item if item in items else None


def _template_layers(layers: Sequence[Layer], item: Any) -> list[Layer]:
    """Returns the weakest layer with templates: from one was filled in what no layer has as it is."""
    if not isinstance(item, str):
        return []
    return [
        layer
        for layer in layers
        if isinstance(layer.value, list) and any(isinstance(each, str) and "{{" in each for each in layer.value)
    ][-1:]
