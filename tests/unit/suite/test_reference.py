"""The reference pages name everything there is, and nothing else."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import msgspec
import pytest

from isvc.api.annotations import INTERNAL
from isvc.api.resources import GROUP
from isvc.serving.config import Config
from isvc.serving.config.sections import Section

ROOT = Path(__file__).parents[3]
REFERENCE, SOURCE = ROOT / "docs" / "reference", ROOT / "src" / "isvc"


def tables(page: str) -> dict[str, dict[str, list[str]]]:
    """Heading -> first cell of a row without its backticks -> the other cells."""
    found: dict[str, dict[str, list[str]]] = {}
    for section in (REFERENCE / page).read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| `")]
        found[heading.strip("`")] = {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}
    return found


def keys(section: type[Section], path: str = "") -> Iterator[tuple[str, str]]:
    """The keys of a section with their defaults, as they are written in a table."""
    for info in msgspec.structs.fields(section):
        name = f"{path}{info.encode_name}"
        inner = _present(info.type)
        if isinstance(inner[0], type) and issubclass(inner[0], Section):
            yield from keys(inner[0], f"{name}.")
        else:
            yield name, _written(info.default)


def _written(default: Any) -> str:
    if default in ("", None, (), msgspec.NODEFAULT):
        return ""
    text = ", ".join(default) if isinstance(default, tuple) else str(default)
    return f"`{text.lower() if isinstance(default, bool) else text}`"


def sections() -> dict[str, type[Section]]:
    """Sections by their keys in the ConfigMap."""
    return {info.encode_name: _present(info.type)[0] for info in msgspec.structs.fields(Config)}


def _present(kind: Any) -> list[Any]:
    """What a type is, apart from nothing."""
    return [each for each in get_args(kind) or (kind,) if each is not NoneType]


def test_every_section_of_the_configuration_is_described() -> None:
    assert set(tables("configuration.md")) == set(sections())


@pytest.mark.parametrize("section", sections())
def test_every_key_of_the_configuration_is_described_with_its_default(section: str) -> None:
    described = {key: cells[0] for key, cells in tables("configuration.md")[section].items()}
    assert described == dict(keys(sections()[section]))


def test_the_chart_takes_every_section_of_the_configuration_and_no_other() -> None:
    schema = json.loads((ROOT / "charts" / "isvc" / "values.schema.json").read_text())
    allowed = schema["properties"]["config"]["properties"]["sections"]["propertyNames"]["enum"]
    assert set(allowed) == set(sections())


ANNOTATION = re.compile(r"(?:[a-z]+\.)*kserve\.io/[A-Za-z][A-Za-z0-9-]+")


def test_every_annotation_and_label_is_described() -> None:
    described = {name for rows in tables("annotations.md").values() for name in rows if "kserve.io/" in name}
    assert described == annotations_of_the_code()


def annotations_of_the_code() -> set[str]:
    """Every string of the controllers and webhooks that is written like one."""
    names = {"GROUP": GROUP, "INTERNAL": INTERNAL}
    found = {
        text
        for part in ("api", "serving", "controllers", "webhooks")
        for path in (SOURCE / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if ANNOTATION.fullmatch(text := _text(node, names))
    }
    of_s3 = re.findall(r'read\(\s*"(s3-[a-z-]+)"', (SOURCE / "serving" / "credentials" / "s3.py").read_text())
    versions = {f"{GROUP}/{version}" for version in ("v1alpha1", "v1alpha2", "v1beta1")}
    samples = {f"{GROUP}/model-uri"}
    return (found | {f"{GROUP}/{name}" for name in of_s3}) - versions - samples


def _text(node: ast.AST, names: dict[str, str]) -> str:
    """A string literal, with constants of other modules filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, names) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return names.get(name, "{}")
        case _:
            return "{}"
