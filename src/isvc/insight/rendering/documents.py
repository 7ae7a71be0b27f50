"""Kubernetes documents from files, folders and standard input, each with the place it came from.

YAML is read as `kubectl` reads it: dates and `1:30` are text, a key may not be there twice, and a few aliases may not
stand for millions of values. Every complaint names file and line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from isvc.kube.go_yaml import Loader, check_shape
from isvc.kube.objects import Object

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
MOST_VALUES: Final = 1_000_000  # in one document, aliases written out
MOST_BYTES: Final = 64 * 1024 * 1024


class DocumentError(Exception):
    """A file that cannot be read, or a document that is none; the message begins with its place."""


@dataclass(frozen=True, slots=True)
class Document:
    """An object and where it was written: a file and the line it begins in."""

    obj: Object = field(repr=False)
    source: str = ""

    def __str__(self) -> str:
        metadata = self.obj.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}…"
        return f"{self.source}: {self.obj.get('kind')} {name}" if self.source else f"{self.obj.get('kind')} {name}"


def load(*paths: str | Path) -> list[Document]:
    """Returns the documents of files, of folders (not those in them, as `kubectl -f`) and of standard input, `-`."""
    found = [document for path in paths for file in _files(path) for document in read(_text(file), str(file))]
    if not found:
        given = ", ".join("standard input" if str(path) == STDIN else str(path) for path in paths)
        raise DocumentError(f"{given}: there is no document in it")
    return found


def read(text: str, source: str = "") -> Iterator[Document]:
    """Yields the documents of a text; those of a `List` one by one, and empty ones left out."""
    for value, line in _values(text, source):
        if value is not None:
            yield from _objects(value, f"{source}:{line}" if source else f"line {line}")


def documents(given: Iterable[Document | Object | str | Path]) -> list[Document]:
    """Returns documents as a caller has them: objects, paths, or what was loaded already."""
    found: list[Document] = []
    for each in given:
        if isinstance(each, Document):
            found.append(each)
        elif isinstance(each, dict):
            found += _objects(each, "")
        else:
            found += load(each)
    return found


def _files(path: str | Path) -> list[str | Path]:
    if str(path) == STDIN or not Path(path).is_dir():
        return [path]
    found: list[str | Path] = sorted(each for each in Path(path).iterdir() if each.suffix in SUFFIXES)
    if not found:
        raise DocumentError(f"{path}: the folder has no file that ends in {', '.join(SUFFIXES)}")
    return found


def _text(path: str | Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise DocumentError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(content) > MOST_BYTES:
        raise DocumentError(f"{path}: {len(content) >> 20} MiB are more than a manifest can have")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"{path}:{line}: the file is not UTF-8") from None


def _objects(value: Any, place: str) -> Iterator[Document]:
    where = f"{place}: " if place else ""
    if not isinstance(value, dict):
        raise DocumentError(f"{where}a document has to be a map, and this is {_describe(value)}")
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise DocumentError(f"{where}the document has no {name}")
    if value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects(item, place)
        return
    if not isinstance(value.get("metadata"), dict):
        raise DocumentError(f"{where}{value['kind']} has no metadata")
    for name in ("name", "generateName", "namespace"):
        if not isinstance(found := value["metadata"].get(name), str | None):
            raise DocumentError(
                f"{where}metadata.{name} of {value['kind']} has to be text, and this is {_describe(found)}"
            )
    if not (value["metadata"].get("name") or value["metadata"].get("generateName")):
        raise DocumentError(f"{where}{value['kind']} has no metadata.name")
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise DocumentError(f"{where}{value['kind']} has a value that JSON cannot have: {error}") from None
    yield Document(value, place)


def _describe(value: Any) -> str:
    return "a list" if isinstance(value, list) else "text" if isinstance(value, str) else f"the value {value!r}"


# -- YAML -----------------------------------------------------------------------------------------------------------


def _values(text: str, source: str) -> Iterator[tuple[Any, int]]:
    """Yields each document's value, and the line where it begins."""
    where = source or "the text"
    if text.lstrip().startswith("{"):  # JSON may be indented with tabs
        try:
            yield orjson.loads(text), 1
            return
        except orjson.JSONDecodeError:
            pass
    loader = Loader(text)
    try:
        check_shape(text)
        while loader.check_node():
            node = loader.get_node()
            _check(node, where)
            yield loader.construct_document(node), node.start_mark.line + 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise DocumentError(f"{where}:{line}: {_complaint(error, text, line)}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{where}: {' '.join(str(error).split())}") from None
    except ValueError as error:  # nested too deeply, or a number that is none
        raise DocumentError(f"{where}: {error}") from None
    finally:
        loader.dispose()


def _complaint(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    lines = text.splitlines()
    if 0 < line <= len(lines) and lines[line - 1].lstrip(" ").startswith("\t"):
        return "the line is indented with a tab, where YAML wants spaces"
    return error.problem or error.context or "it is not YAML"


def _check(node: yaml.Node, where: str) -> None:
    """Refuses keys that are there twice, and aliases that stand for too much or for themselves."""
    if _size(node, {}, where) > MOST_VALUES:
        line = node.start_mark.line + 1
        raise DocumentError(f"{where}:{line}: the document stands for more than {MOST_VALUES} values")


def _size(node: yaml.Node, known: dict[int, int], where: str) -> int:
    """Returns how many values a node stands for, with aliases written out; what contains itself has no end."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_VALUES + 1
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, where)
            inner = [each for pair in node.value for each in pair]
        else:
            inner = node.value
        known[id(node)] = 1 + sum(_size(each, known, where) for each in inner)
    return known[id(node)]


def _check_keys(node: yaml.MappingNode, where: str) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise DocumentError(f"{where}:{line}: a key has to be text")
        if key.value in seen:
            raise DocumentError(f"{where}:{line}: the key {key.value} is there twice")
        if key.tag != "tag:yaml.org,2002:merge":
            seen.add(key.value)
