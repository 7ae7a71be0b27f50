"""The table of Go types knows every field that our own types have, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from isvc.api.fields import Spec
from isvc.api.llm import v1alpha2
from isvc.api.meta import ObjectMeta
from isvc.serving.llm.gotypes import go_type
from isvc.serving.templates.values import INT32, Type


def keys(struct: Type) -> dict[str, Type]:
    found: dict[str, Type] = {}
    for each in struct.fields:
        found |= {each.key: each.type} if each.key else keys(each.type)
    return found


def bare(kind: Type) -> Type:
    while kind.kind in ("pointer", "slice") and kind.elem is not None:
        kind = kind.elem
    return kind


def specs(hint: Any) -> Iterator[type[Spec]]:
    if isinstance(hint, type) and issubclass(hint, Spec):
        yield hint
    for each in get_args(hint):
        yield from specs(each)


def differences(ours: type[Spec], go: Type, seen: set[type[Spec]]) -> Iterator[str]:
    if ours in seen:
        return
    seen.add(ours)
    hints, theirs = get_type_hints(ours, include_extras=True), keys(go)
    names = {info.encode_name: info for info in msgspec.structs.fields(ours)}
    yield from (f"{ours.__name__}.{name}" for name in names.keys() ^ theirs.keys())
    for name in names.keys() & theirs.keys():
        for inner in specs(hints[names[name].name]):
            if inner is not ObjectMeta:
                yield from differences(inner, bare(theirs[name]), seen)


@pytest.mark.parametrize("kind", [v1alpha2.LLMInferenceService, v1alpha2.LLMInferenceServiceConfig])
def test_every_field_is_in_both(kind: type[Spec]):
    assert not list(differences(kind, go_type(f"llm.{kind.__name__}"), set()))


def test_fields_are_found_through_embedded_structs():
    service = go_type("llm.LLMInferenceService")
    assert [each.name for each in service.find("Name")] == ["ObjectMeta", "Name"]
    spec = service.find("Spec")[-1].type
    assert [each.name for each in spec.find("Replicas")] == ["WorkloadSpec", "Replicas"]
    assert spec.find("Replicas")[-1].type.elem is INT32
    assert service.find("Nope") == ()
