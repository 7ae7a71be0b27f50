"""The CRDs we make are those of the reference, but for a few differences that have names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import orjson
import pytest
from tests.recordings import FOLDER, load

from isvc.api.fields import Spec
from isvc.api.kinds import KINDS, KindRow
from isvc.api.kinds.crds import crd
from isvc.api.meta import ObjectMeta
from isvc.api.schema import schema_for

REFERENCE = FOLDER / "crds" / "kserve"

INTENDED = {
    "a reference that embeds a name is atomic there, and here as Kubernetes has it": re.compile(
        r"\.(configMapRef|secretRef|configMap|secret)#x-kubernetes-map-type$"
    ),
    "Kubernetes' own defaults of Azure disks": re.compile(r"\.azureDisk\.(cachingMode|kind)#default$"),
    "a field of Kubernetes 1.35: annotations of pod certificates": re.compile(r"\.podCertificate\.userAnnotations\b"),
    "a field of Kubernetes 1.35: the workload that a pod belongs to": re.compile(r"\.workloadRef\b"),
}


def facts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "properties":
            for name, each in value.items():
                yield from facts(each, f"{path}.{name}")
        elif key == "items":
            yield from facts(value, f"{path}[]")
        elif key == "additionalProperties" and isinstance(value, dict):
            yield from facts(value, f"{path}{{}}")
        elif key != "description":
            yield f"{path}#{key}", value


def name_of_difference(path: str) -> str | None:
    return next((name for name, pattern in INTENDED.items() if pattern.search(path)), None)


def in_the_usual_table(version: dict) -> list[dict]:
    """The columns that kubectl shows without -o wide, which scripts may count."""
    return [column for column in version.get("additionalPrinterColumns") or () if not column.get("priority")]


@pytest.mark.parametrize("plural", ["inferenceservices", "inferencegraphs", "trainedmodels", "llminferenceservices"])
def test_kubectl_get_wide_shows_the_reason(plural: str):
    definition = next(each for each in KINDS if each.resource.plural == plural)
    paths = [column["jsonPath"] for column in definition.columns]
    assert ".status.conditions[?(@.type=='Ready')].reason" in paths


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference's CRDs are not here")
@pytest.mark.parametrize("definition", KINDS, ids=lambda definition: definition.resource.plural)
def test_agrees_with_the_reference(definition: KindRow):
    ours = crd(definition, described=True)
    theirs = load(REFERENCE / f"serving.kserve.io_{definition.resource.plural}.yaml")
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    for part in ("group", "names", "scope"):
        assert ours["spec"][part] == theirs["spec"][part]
    assert [version["name"] for version in ours["spec"]["versions"]] == [
        version["name"] for version in theirs["spec"]["versions"]
    ]
    for mine, reference in zip(ours["spec"]["versions"], theirs["spec"]["versions"], strict=True):
        for part in ("served", "storage"):
            assert mine.get(part) == reference.get(part)
        assert in_the_usual_table(mine) == in_the_usual_table(reference)
        assert (mine.get("subresources") or {}) == (reference.get("subresources") or {})
        here = dict(facts(mine["schema"]["openAPIV3Schema"]))
        there = dict(facts(reference["schema"]["openAPIV3Schema"]))
        different = {path for path in here.keys() | there.keys() if here.get(path) != there.get(path)}
        assert {path for path in different if name_of_difference(path) is None} == set()


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference's CRDs are not here")
def test_every_named_difference_exists():
    seen = set()
    for definition in KINDS:
        theirs = load(REFERENCE / f"serving.kserve.io_{definition.resource.plural}.yaml")
        for mine, reference in zip(
            crd(definition, described=False)["spec"]["versions"], theirs["spec"]["versions"], strict=True
        ):
            here = dict(facts(mine["schema"]["openAPIV3Schema"]))
            there = dict(facts(reference["schema"]["openAPIV3Schema"]))
            seen |= {name_of_difference(path) for path in here.keys() ^ there.keys()}
    assert seen == set(INTENDED)


@pytest.mark.parametrize("definition", KINDS, ids=lambda definition: definition.resource.plural)
def test_fits_into_etcd(definition: KindRow):
    assert len(orjson.dumps(crd(definition, described=True))) < 1_400_000


def structs(hint: Any, seen: set[type[Spec]]) -> set[type[Spec]]:
    """Every struct type that a type contains, itself included."""
    if isinstance(hint, type) and issubclass(hint, Spec):
        if hint not in seen and hint is not ObjectMeta:
            seen.add(hint)
            for each in get_type_hints(hint, include_extras=True).values():
                structs(each, seen)
    else:
        for each in get_args(hint):
            structs(each, seen)
    return seen


def test_every_field_of_ours_is_described():
    kinds = set().union(*(structs(kind, set()) for definition in KINDS for _, kind in definition.versions))
    assert len(kinds) > 100
    undescribed = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, schema in schema_for(kind, described=True)["properties"].items()
        if name in {info.encode_name for info in msgspec.structs.fields(kind)} and "description" not in schema
    ]
    assert [field for field in undescribed if field.split(".")[1] not in ("apiVersion", "kind", "metadata")] == []


def test_without_descriptions_nothing_else_changes():
    for definition in KINDS:
        with_them, without = crd(definition, described=True), crd(definition, described=False)
        for full, bare in zip(with_them["spec"]["versions"], without["spec"]["versions"], strict=True):
            assert "description" not in bare["schema"]["openAPIV3Schema"]
            assert dict(facts(full["schema"]["openAPIV3Schema"])) == dict(facts(bare["schema"]["openAPIV3Schema"]))
