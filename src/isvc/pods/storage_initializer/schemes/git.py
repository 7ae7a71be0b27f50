"""Git repositories over HTTP: the newest commit of a branch, a tag, or the default branch, and nothing of the history.

Git is spoken by dulwich, over our own HTTP, so that redirects, CAs and timeouts are the same as everywhere. What Git
LFS keeps elsewhere is downloaded, too. GIT_USERNAME and GIT_PASSWORD are for private repositories; `#name` at the end
of the address chooses a branch or a tag.
"""

from __future__ import annotations

import io
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.client import HTTPResponse
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from isvc.pods.storage_initializer.fetching import Room
from isvc.pods.storage_initializer.remote import Digest, RemoteFile
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.storage_initializer.unpacking import ENTRY_COST, Budget, Tree, path_inside
from isvc.pods.storage_initializer.web import LARGEST_JSON, Pace, Web, WebFile, basic, split_login
from isvc.pods.storage_initializer.web_policy import origin
from isvc.pods.stores.errors import Damaged, Interrupted, NotFound, need
from isvc.pods.stores.settings import Settings
from isvc.wire.failures import message_of

_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n"
)
_LONGEST_POINTER: Final = 1024
_SUBMODULE: Final = 0o160000  # another repository, of which only the address is here


class Repository(NamedTuple):
    url: str  # without user, password and fragment
    name: str  # of a branch or a tag; empty for the default branch
    headers: dict[str, str]


class Pointer(NamedTuple):
    """A file that Git LFS keeps."""

    path: str
    oid: str
    size: int


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    need("dulwich", "git")
    repository, web = parse(uri, settings), Web.of(settings)
    clone = folder.with_name(f"{folder.name}.git")
    clone.mkdir(exist_ok=True)
    tree = Tree(folder, Budget(0))
    pointers = list(_check_out(uri, repository, web, clone, tree, settings))
    if pointers:
        _download_large(uri, repository, web, pointers, folder, settings)


def parse(uri: str, settings: Settings) -> Repository:
    url, user, password = split_login(uri)
    place, _, version = url.partition("#")
    headers = basic(user or settings.get("GIT_USERNAME"), settings.get("GIT_PASSWORD") or password)
    return Repository(place.rstrip("/"), unquote(version), headers)


def _check_out(
    uri: str, repository: Repository, web: Web, clone: Path, tree: Tree, settings: Settings
) -> Iterator[Pointer]:
    """Writes the files of one commit, and yields those that are kept elsewhere."""
    errors, objects = need("dulwich.errors", "git"), need("dulwich.object_store", "git")
    try:
        with need("dulwich.repo", "git").Repo.init_bare(str(clone)) as local:
            commit = _fetch(uri, repository, web, local, clone)
            tree.budget = Budget(sum(path.stat().st_size for path in clone.rglob("*.pack")))
            for entry in objects.iter_tree_contents(local.object_store, local[commit].tree, include_trees=True):
                path = path_inside(entry.path.decode(errors="surrogateescape"))
                # One folder may stand in many places, each of which again in many: looking is not for nothing.
                tree.budget.spend(ENTRY_COST)
                if stat.S_IFMT(entry.mode) not in (stat.S_IFDIR, _SUBMODULE) and settings.wants(str(path)):
                    yield from _write(path, entry.mode, local[entry.sha].data, tree)
    except errors.NotGitRepository as error:
        raise NotFound(f"{uri}: there is no repository") from error
    except (errors.GitProtocolError, errors.HangupException) as error:
        raise Interrupted(f"{uri}: {message_of(error)}") from error
    except (errors.FileFormatException, errors.ChecksumMismatch, errors.ObjectFormatException, KeyError) as error:
        raise Damaged(f"{uri}: the repository cannot be read: {error}") from error
    tree.remove_symlinks_to_nowhere()


def _fetch(uri: str, repository: Repository, web: Web, local: Any, clone: Path) -> bytes:
    """Fetches the files of a commit; returns its id."""
    chosen: list[bytes] = []

    def choose(refs: dict[bytes, bytes], depth: int | None = None) -> list[bytes]:
        name = repository.name.encode()
        names = (b"refs/heads/" + name, b"refs/tags/" + name + b"^{}", b"refs/tags/" + name) if name else (b"HEAD",)
        chosen.extend(refs[each] for each in names if each in refs)
        return chosen[:1]

    client = _client(repository, web, clone)
    client.fetch(b"", local, determine_wants=choose, depth=1)
    if not chosen:
        what = f"has no branch or tag {repository.name!r}" if repository.name else "is empty"
        raise NotFound(f"{uri}: the repository {what}")
    found = local[chosen[0]]
    return bytes(found.object[1] if found.type_name == b"tag" else found.id)


def _write(path: PurePosixPath, mode: int, content: bytes, tree: Tree) -> Iterator[Pointer]:
    if stat.S_ISLNK(mode):
        tree.make_symlink(path, content.decode(errors="surrogateescape"))
        return
    tree.write_file(path, io.BytesIO(content), executable=bool(mode & 0o100))
    if len(content) <= _LONGEST_POINTER and (pointer := _POINTER.fullmatch(content)):
        yield Pointer(str(path), pointer[1].decode(), int(pointer[2]))


def _download_large(
    uri: str, repository: Repository, web: Web, pointers: list[Pointer], folder: Path, settings: Settings
) -> None:
    """Brings what Git LFS keeps into the place of its pointers."""
    asked = {
        "operation": "download",
        "transfers": ["basic"],
        "objects": [{"oid": pointer.oid, "size": pointer.size} for pointer in pointers],
    }
    kind = "application/vnd.git-lfs+json"
    headers = {**repository.headers, "Accept": kind, "Content-Type": kind}
    answer = web.json(f"{repository.url}/info/lfs/objects/batch", headers, asked)
    actions = {}
    for found in answer.get("objects", []) if isinstance(answer, dict) else ():
        match found:
            case {"oid": str(oid), "actions": {"download": {"href": str(href)} as action}}:
                actions[oid] = WebFile(web, href, action.get("header"), Digest.sha256(bytes.fromhex(oid)))
    files = []
    for pointer in pointers:
        if pointer.oid not in actions:
            raise NotFound(f"{uri}: Git LFS does not have {pointer.path}")
        (folder / pointer.path).unlink()
        files.append(RemoteFile(pointer.path, actions[pointer.oid].open, pointer.size, pointer.oid))
    download(uri, files, folder, side_by_side=settings.number("GIT_MAX_FILE_CONCURRENCY", 4), alone=False)


def _client(repository: Repository, web: Web, clone: Path) -> Any:
    base = need("dulwich.client", "git").AbstractHttpGitClient

    class Client(base):  # type: ignore[misc, valid-type]
        """Git's client, over our HTTP."""

        def _get_url(self, path: bytes) -> str:
            return f"{repository.url}/"

        def _http_request(
            self, url: str, headers: dict[str, str] | None = None, data: Any = None, raise_for_status: bool = True
        ) -> tuple[Any, Callable[[int], bytes]]:
            own = repository.headers if origin(url) == origin(repository.url) else {}
            body = data if data is None or isinstance(data, bytes) else b"".join(data)
            lists_names = (data is None and "/info/refs" in url) or b"command=ls-refs" in (body or b"")[:100]
            limit = LARGEST_JSON if lists_names else None
            answer = _Answer(web.get(url, {**(headers or {}), **own}, body), url, clone, limit)
            return answer, answer.read

    return Client(repository.url)


class _Answer:
    """An answer as dulwich wants it. It keeps branches and tags in memory, so that a list of them has a limit."""

    def __init__(
        self, opened: AbstractContextManager[HTTPResponse], url: str, clone: Path, limit: int | None = None
    ) -> None:
        self._opened = opened
        self._response = opened.__enter__()
        self._room, self._pace = Room(clone, url), Pace()
        self._url, self._left = url, limit
        self.content_type = self._response.headers.get("Content-Type")
        self.redirect_location = "" if self._response.url == url else self._response.url

    def read(self, count: int = -1) -> bytes:
        if self._left is not None and not 0 <= count <= self._left:
            count = self._left + 1
        data = self._response.read(count)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise Damaged(f"{self._url}: the list of branches and tags has no end")
        self._room.take(len(data))
        self._pace.take(len(data))
        return data

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
