"""Archives and image layers made to do harm: nothing is written, changed or removed outside their folder."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isvc.pods.storage_initializer.archive import unpack
from isvc.pods.storage_initializer.layers import apply_layer, check_links
from isvc.pods.storage_initializer.unpacking import Budget
from isvc.pods.stores.errors import Damaged


class Entry(NamedTuple):
    name: str
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    content: bytes = b""


def tar_of(*entries: Entry) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.type, info.linkname, info.size = entry.kind, entry.target, len(entry.content)
            tar.addfile(info, io.BytesIO(entry.content))
    return packed.getvalue()


class Home(NamedTuple):
    """A model's folder with a neighbour, and something to point at outside."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "models" / "mine"

    def outside(self) -> dict[str, str]:
        """Everything that is not in the model's folder, by what it is and holds."""
        return {
            str(path): path.read_text() if path.is_file() else "folder"
            for path in (self.root, *self.root.rglob("*"))
            if not path.is_relative_to(self.folder)
        }

    def inside(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def make_home(root: Path) -> Home:
    home = Home(root)
    home.folder.mkdir(parents=True)
    (root / "models" / "neighbour").mkdir()
    (root / "models" / "neighbour" / "model.bin").write_text("weights")
    (root / "secret").write_text("secret")
    return home


def apply(home: Home, *layers: bytes) -> None:
    budget = Budget(0)
    for content in layers:
        layer = home.root.parent / f"{home.root.name}.layer"
        layer.write_bytes(content)
        apply_layer(layer, home.folder, budget)
    check_links(home.folder)


@pytest.mark.parametrize(
    "entries",
    [
        [Entry("models/.wh...")],
        [Entry("models/.wh.")],
        [Entry("models/.wh..")],
        [Entry("models/a/.wh...")],
        [Entry("models/../../secret", content=b"x")],
        [Entry("models/link", tarfile.SYMTYPE, "../neighbour")],
        [Entry("models/link", tarfile.SYMTYPE, "/etc")],
        [Entry("models/link", tarfile.SYMTYPE, ".."), Entry("models/link/secret", content=b"x")],
        [
            Entry("models/a/b/root", tarfile.SYMTYPE, "../.."),
            Entry("models/out", tarfile.SYMTYPE, "a/b/root/../neighbour"),
        ],
        [Entry("models/hard", tarfile.LNKTYPE, "models/../../secret")],
        [Entry("models/hard", tarfile.LNKTYPE, "etc/passwd")],
        [Entry("models/link", tarfile.SYMTYPE, "../../secret"), Entry("models/hard", tarfile.LNKTYPE, "models/link")],
        [Entry("models/null", tarfile.CHRTYPE)],
        [Entry("models/disk", tarfile.BLKTYPE)],
        [Entry("models/pipe", tarfile.FIFOTYPE)],
        [Entry("models", tarfile.SYMTYPE, "..")],
        [Entry("models/" + "d/" * 200 + "deep")],
        [Entry("models/" + "n" * 300)],
    ],
)
def test_layers_that_reach_outside_are_refused(home: Home, entries: list[Entry]) -> None:
    before = home.outside()
    with pytest.raises(Damaged):
        apply(home, tar_of(*entries))
    assert home.outside() == before


def test_a_whiteout_through_a_link_removes_nothing(home: Home) -> None:
    before = home.outside()
    linked = tar_of(Entry("models/link", tarfile.SYMTYPE, "../neighbour"))
    with pytest.raises(Damaged):
        apply(home, linked, tar_of(Entry("models/link/.wh.model.bin"), Entry("models/link/.wh..wh..opq")))
    assert home.outside() == before


FIRST = tar_of(
    Entry("models/a", content=b"a1"), Entry("models/d/x", content=b"x1"), Entry("models/d/deep/y", content=b"y1")
)


@pytest.mark.parametrize(
    ("second", "left"),
    [
        ([Entry("models/.wh.a")], {"d/x": b"x1", "d/deep/y": b"y1"}),
        ([Entry("models/d/.wh..wh..opq")], {"a": b"a1"}),
        ([Entry("models/d/z", content=b"z2"), Entry("models/d/.wh..wh..opq")], {"a": b"a1", "d/z": b"z2"}),
        ([Entry("models/.wh.d"), Entry("models/d/z", content=b"z2")], {"a": b"a1", "d/z": b"z2"}),
        ([Entry("models/a", content=b"a2"), Entry("models/.wh.a")], {"a": b"a2", "d/x": b"x1", "d/deep/y": b"y1"}),
        ([Entry("models/a", content=b"a2"), Entry(".wh.models")], {"a": b"a2"}),
        ([Entry("models/a", content=b"a2"), Entry(".wh..wh..opq")], {"a": b"a2"}),
        ([Entry("models/.wh..wh.plnk")], {"a": b"a1", "d/x": b"x1", "d/deep/y": b"y1"}),
        ([Entry("models/d", content=b"file now")], {"a": b"a1", "d": b"file now"}),
        ([Entry("models/a", tarfile.DIRTYPE), Entry("models/a/b", content=b"b2")],
         {"a/b": b"b2", "d/x": b"x1", "d/deep/y": b"y1"}),
        ([Entry("models/d/.wh.nothing"), Entry("models/no/.wh.where")], {"a": b"a1", "d/x": b"x1", "d/deep/y": b"y1"}),
    ],
)  # fmt: skip
def test_what_a_layer_hides_and_replaces(home: Home, second: list[Entry], left: dict[str, bytes]) -> None:
    apply(home, FIRST, tar_of(*second))
    assert home.inside() == left


def test_links_inside_the_folder(home: Home) -> None:
    later = Entry("models/blobs/1", content=b"weights")
    apply(
        home,
        tar_of(Entry("models/v1/model.bin", tarfile.SYMTYPE, "../blobs/1"), Entry("models/lost", tarfile.SYMTYPE, "x")),
        tar_of(later, Entry("models/same", tarfile.LNKTYPE, "models/blobs/1")),
    )
    assert home.inside() == {"v1/model.bin": b"weights", "blobs/1": b"weights", "same": b"weights"}
    assert not (home.folder / "lost").is_symlink()


def test_a_file_replaces_a_hard_link_and_not_its_content(home: Home) -> None:
    apply(
        home,
        tar_of(
            Entry("models/a", content=b"first"),
            Entry("models/b", tarfile.LNKTYPE, "models/a"),
            Entry("models/b", content=b"second"),
        ),
    )
    assert home.inside() == {"a": b"first", "b": b"second"}


def zeros(size: int) -> bytes:
    return tar_of(Entry("models/zeros", content=bytes(size)))


def zip_of(size: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("models/zeros", bytes(size))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.tar.gz", gzip.compress(zeros(8 << 20))),
        ("model.tar.bz2", bz2.compress(zeros(8 << 20))),
        ("model.tar.xz", lzma.compress(zeros(8 << 20))),
        ("model.zip", zip_of(8 << 20)),
    ],
)
def test_bombs_are_stopped(home: Home, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.storage_initializer.unpacking.UNSUSPICIOUS_SIZE", 1 << 20)
    (home.folder / name).write_bytes(content)
    with pytest.raises(Damaged, match="times its size"):
        unpack(home.folder / name, home.folder)
    written = sum(path.stat().st_size for path in home.folder.rglob("*") if path.is_file())
    assert written <= Budget(len(content)).limit


def test_a_header_that_claims_gigabytes_is_not_read(home: Home) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 8 << 30
    (home.folder / "model.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(Damaged, match="header of"):
        unpack(home.folder / "model.tar", home.folder)


def test_millions_of_empty_files_are_stopped(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.storage_initializer.unpacking.UNSUSPICIOUS_SIZE", 1 << 20)
    content = gzip.compress(tar_of(*(Entry(str(number)) for number in range(3000))))
    (home.folder / "model.tgz").write_bytes(content)
    with pytest.raises(Damaged, match="times its size"):
        unpack(home.folder / "model.tgz", home.folder)


def test_bombs_in_many_layers_are_stopped(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.storage_initializer.unpacking.UNSUSPICIOUS_SIZE", 4 << 20)
    with pytest.raises(Damaged, match="times its size"):
        apply(home, *(gzip.compress(tar_of(Entry(f"models/{number}", content=bytes(1 << 20)))) for number in range(5)))


def test_names_of_megabytes_are_not_repeated(home: Home) -> None:
    (home.folder / "model.tar").write_bytes(tar_of(Entry("/" + "a." * (1 << 20))))
    with pytest.raises(Damaged) as refused:
        unpack(home.folder / "model.tar", home.folder)
    assert len(str(refused.value)) < 250


def test_headers_for_nothing_but_headers_are_refused(home: Home) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 5
    (home.folder / "model.tar").write_bytes((info.tobuf(tarfile.GNU_FORMAT) + b"name\0".ljust(512, b"\0")) * 2000)
    with pytest.raises(Damaged, match="cannot be read"):
        unpack(home.folder / "model.tar", home.folder)


def test_a_chain_of_links_is_not_followed_for_each(home: Home) -> None:
    chain = [Entry(str(number), tarfile.SYMTYPE, str(number - 1)) for number in range(1, 300)]
    (home.folder / "model.tar").write_bytes(tar_of(Entry("0"), *chain))
    with patch.object(os, "readlink", wraps=os.readlink) as followed:
        unpack(home.folder / "model.tar", home.folder)
    assert followed.call_count < 50 * 300
    assert (home.folder / "40").read_bytes() == b""


def test_what_is_hidden_a_thousand_times_is_looked_for_once(home: Home) -> None:
    with patch.object(Path, "iterdir", autospec=True, side_effect=Path.iterdir) as looked:
        apply(home, tar_of(Entry("models/a/b"), *[Entry("models/.wh..wh..opq"), Entry("models/.wh.a")] * 1000))
    assert looked.call_count < 10
    assert home.inside() == {"a/b": b""}


def zip_with_a_nameless_entry() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("nameless", b"x")
    return packed.getvalue().replace(b"nameless", b"\0ameless")  # a name ends before its first NUL


def zip_whose_directory_is_said_to_be_later() -> bytes:
    content = bytearray(zip_of(1))
    content[-6] += 1  # the offset of the directory, in the last record
    return bytes(content)


@pytest.mark.parametrize("make", [zip_with_a_nameless_entry, zip_whose_directory_is_said_to_be_later])
def test_zips_that_once_got_through(home: Home, make: Callable[[], bytes]) -> None:
    (home.folder / "model.zip").write_bytes(make())
    with pytest.raises(Damaged):
        unpack(home.folder / "model.zip", home.folder)


# -- whatever comes ---------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    ["models", "a", "b", "link", "..", ".", "", ".wh.", ".wh.a", ".wh...", ".wh..wh..opq", "\udcff"]
)
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
MODEL_NAMES = NAMES.map("models/{}".format)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
ENTRIES = st.builds(Entry, MODEL_NAMES | NAMES, KINDS, NAMES | MODEL_NAMES, st.binary(max_size=8))
LAYERS = st.lists(st.lists(ENTRIES, max_size=8), min_size=1, max_size=3)


def link_targets(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(root, name)
            if os.path.islink(path):
                yield os.path.realpath(path)


@given(LAYERS)
@example([[Entry("models/.wh...")]])
@example([[Entry("models/a", tarfile.SYMTYPE, "."), Entry("models/b", tarfile.SYMTYPE, "a/../..")]])
def test_any_layers(tmp_path_factory: pytest.TempPathFactory, layers: list[list[Entry]]) -> None:
    home = make_home(tmp_path_factory.mktemp("any"))
    before = home.outside()
    try:
        apply(home, *(tar_of(*entries) for entries in layers))
        assert all(Path(target).is_relative_to(home.folder) for target in link_targets(home.folder))
    except Damaged:
        pass
    assert home.outside() == before


@pytest.mark.filterwarnings("ignore:Duplicate name")
@given(st.lists(ENTRIES, max_size=8), st.sampled_from(["model.tar", "model.tgz", "model.zip"]), st.data())
def test_any_archive_even_mangled(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], name: str, data: st.DataObject
) -> None:
    home = make_home(tmp_path_factory.mktemp("any"))
    before = home.outside()
    content = bytearray(_packed(name, entries))
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[position] = data.draw(st.integers(0, 255))
    (home.folder / name).write_bytes(content)
    with contextlib.suppress(Damaged):
        unpack(home.folder / name, home.folder)
    assert home.outside() == before


def _packed(name: str, entries: list[Entry]) -> bytes:
    if not name.endswith("zip"):
        content = tar_of(*entries)
        return gzip.compress(content) if name.endswith("tgz") else content
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for entry in entries:
            archive.writestr(entry.name.encode("utf-8", "replace").decode() or "x", entry.content)
    return packed.getvalue()
