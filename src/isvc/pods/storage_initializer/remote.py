"""Files as a store holds them: what a scheme knows of one, and what it gets when it opens it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from isvc.pods.stores.errors import StorageError

CHUNK: Final = 1 << 20
_MODEL: Final = re.compile(r"[a-z]+://([^/:]+/[^/:]+)(?::([^:]+))?/?")


class Sum(Protocol):
    """A running checksum, as `hashlib` makes them."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's content has to sum up to."""

    name: str
    expected: bytes
    new: Callable[[], Sum] = field(compare=False)

    @classmethod
    def md5(cls, expected: bytes) -> Digest:
        return cls("md5", expected, lambda: hashlib.md5(usedforsecurity=False))

    @classmethod
    def sha256(cls, expected: bytes) -> Digest:
        return cls("sha256", expected, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class Body:
    """Content from an offset on. `start` is 0 when the store began again instead of continuing.

    `version` tells this content from any other that the file may have had or get; empty where the store has no such
    thing. `ranges` says that parts of the file can be asked for.
    """

    chunks: Iterator[bytes]
    start: int = 0
    size: int | None = None
    digest: Digest | None = None
    version: str = ""
    ranges: bool = False


class HubModel(NamedTuple):
    """A model of a hub, at `scheme://owner/model[:revision]`."""

    repository: str
    revision: str | None

    @classmethod
    def parse(cls, uri: str) -> HubModel:
        if found := _MODEL.fullmatch(uri):
            return cls(found[1], found[2])
        form = f"{uri.partition('://')[0]}://owner/model"
        raise StorageError(f"{uri}: expected {form} or {form}:revision")


class Open(Protocol):
    def __call__(self, start: int, end: int | None, version: str) -> AbstractContextManager[Body]:
        """Opens the content from `start` to before `end`, which may come later or never; `version` if it is known."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a model. `path` is relative to the model's folder; `version` as in a Body, if it is known before."""

    path: str
    open: Open
    size: int | None = None
    version: str = ""
