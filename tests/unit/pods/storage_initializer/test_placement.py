"""A model is in its folder whole, or not at all: archives, full disks, kills, and what was there before."""

from __future__ import annotations

import io
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, site
from tests.waiting import wait_until

from isvc.pods.storage_initializer.archive import unpack_single
from isvc.pods.storage_initializer.fetching import Patience
from isvc.pods.storage_initializer.placement import PREFIX, stage
from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.remote import Body, RemoteFile
from isvc.pods.storage_initializer.transfer import download, place
from isvc.pods.stores.errors import Damaged, NoSpace

PROGRAM = [sys.executable, "-m", "isvc.pods.storage_initializer"]


def test_files_and_folders(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "model.bin").write_bytes(b"weights")
    (source / "deep" / "config.json").write_bytes(b"{}")
    (source / "link.bin").symlink_to("model.bin")
    assert run([f"file://{source}", str(tmp_path / "a" / "model"), str(source), str(tmp_path / "b")], {}) == 0
    expected = {"model.bin": b"weights", "deep/config.json": b"{}", "link.bin": b"weights"}
    assert contents(tmp_path / "a" / "model") == contents(tmp_path / "b") == expected
    assert not (tmp_path / "b" / "link.bin").is_symlink()


def test_claims_are_folders(tmp_path: Path) -> None:
    (tmp_path / "claims" / "store" / "iris").mkdir(parents=True)
    (tmp_path / "claims" / "store" / "iris" / "m").write_bytes(b"1")
    (tmp_path / "claims" / "secret").write_bytes(b"not yours")
    variables = {"ISVC_PVC_ROOT": str(tmp_path / "claims")}
    assert run(["pvc://store/iris", str(tmp_path / "model")], variables) == 0
    assert contents(tmp_path / "model") == {"m": b"1"}
    assert run(["pvc://store/../secret", str(tmp_path / "other")], variables) == 4
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 2),
        (["file:///x"], 2),
        (["file:///nowhere", "{}/m"], 3),
        (["file:///dev/zero", "{}/m"], 4),
        (["ftp://h/x", "{}/m"], 8),
    ],
)
def test_statuses(tmp_path: Path, arguments: list[str], status: int) -> None:
    message = tmp_path / "termination-log"
    found = run([argument.format(tmp_path) for argument in arguments], {"TERMINATION_MESSAGE_PATH": str(message)})
    assert found == status
    assert not (tmp_path / "m").exists()
    assert message.exists() == (status != 2)


def test_other_models_in_the_folder_stay(tmp_path: Path) -> None:
    dest = tmp_path / "models"
    (dest / "other").mkdir(parents=True)
    (dest / "other" / "m").write_bytes(b"mine")
    (dest / "model.bin").write_bytes(b"old")
    source = tmp_path / "source"
    (source / "other").mkdir(parents=True)
    (source / "other" / "n").write_bytes(b"added")
    (source / "model.bin").write_bytes(b"new")
    assert run([str(source), str(dest)], {}) == 0
    assert contents(dest) == {"other/m": b"mine", "other/n": b"added", "model.bin": b"new"}


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    dest = tmp_path / "model"
    dest.mkdir()
    (dest / "m").write_bytes(b"old")

    def broken() -> None:
        with stage(dest) as folder:
            (folder / "m").write_bytes(b"half")
            raise NoSpace

    with pytest.raises(NoSpace):
        broken()
    assert contents(tmp_path) == {"model/m": b"old"}


def test_somebody_elses_download_is_left_alone(tmp_path: Path) -> None:
    with stage(tmp_path / "a") as first:
        (first / "m").write_bytes(b"1")
        with stage(tmp_path / "b") as second:
            (second / "m").write_bytes(b"2")
        assert first.exists()
    assert contents(tmp_path) == {"a/m": b"1", "b/m": b"2"}


def tar_of(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return path


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


MEMBERS = {"model.bin": b"weights", "deep/config.json": b"{}"}


@pytest.mark.parametrize("name", ["model.tar", "model.tgz", "model.zip"])
def test_archives_are_unpacked(tmp_path: Path, name: str) -> None:
    archive = (zip_of if name.endswith("zip") else tar_of)(tmp_path / name, MEMBERS)
    assert run([f"file://{archive}", str(tmp_path / "model")], {}) == 0
    assert contents(tmp_path / "model") == MEMBERS
    assert archive.exists()


@pytest.mark.parametrize("evil", ["../evil", "/tmp/isvc-evil", "a/../../evil"])
@pytest.mark.parametrize("name", ["model.tar", "model.zip"])
def test_archives_that_leave_their_folder_are_refused(tmp_path: Path, name: str, evil: str) -> None:
    archive = (zip_of if name.endswith("zip") else tar_of)(tmp_path / name, {"good": b"1", evil: b"2"})
    message = tmp_path / "termination-log"
    assert run([str(archive), str(tmp_path / "in" / "model")], {"TERMINATION_MESSAGE_PATH": str(message)}) == 6
    assert evil in message.read_text()
    assert list((tmp_path / "in").iterdir()) == []
    assert not (tmp_path / "evil").exists()
    assert not Path("/tmp/isvc-evil").exists()


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "model.tar", {}, links={"passwords": "/etc/passwd"})
    assert run([str(archive), str(tmp_path / "model")], {}) == 6
    assert not (tmp_path / "model").exists()


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.tgz").write_bytes(b"no archive")
    assert run([str(tmp_path / "model.tgz"), str(tmp_path / "model")], {}) == 6
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["model.tgz", "model.zip"])
@pytest.mark.parametrize("part", [0.3, 0.5, 0.8])
def test_archives_whose_content_is_mangled_are_told(tmp_path: Path, name: str, part: float) -> None:
    archive = (zip_of if name.endswith("zip") else tar_of)(tmp_path / name, {"m": random.Random(1).randbytes(50_000)})
    content = bytearray(archive.read_bytes())
    at = int(len(content) * part)
    content[at : at + 2000] = bytes(2000)
    archive.write_bytes(content)
    message = tmp_path / "termination-log"
    assert run([str(archive), str(tmp_path / "in" / "model")], {"TERMINATION_MESSAGE_PATH": str(message)}) == 6
    assert f"{name} cannot be unpacked" in message.read_text()


def test_an_archive_among_other_files_is_a_file(tmp_path: Path) -> None:
    tar_of(tmp_path / "model.tar", MEMBERS)
    (tmp_path / "readme").write_bytes(b"")
    unpack_single(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.tar", "readme"]


@pytest.mark.parametrize("name", ["../m", "/m", "a/../../m", ""])
def test_names_from_a_store_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(Damaged):
        place(tmp_path, name)


def test_a_model_that_cannot_fit_is_refused_at_once(tmp_path: Path) -> None:
    asked = []
    too_big = RemoteFile("m", lambda *_: asked.append(1), size=1 << 60)  # type: ignore[arg-type]
    with pytest.raises(NoSpace, match="TiB"):
        download("m", [too_big], tmp_path)
    assert not asked


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on file sizes fails a write in the middle, as a full disk does."""
    message = tmp_path / "termination-log"
    with site() as web:
        web.files["/model.bin"] = bytes(1_000_000)
        done = subprocess.run(
            [*PROGRAM, f"{web.address}/model.bin", str(tmp_path / "model")],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
            env={**os.environ, "TERMINATION_MESSAGE_PATH": str(message)},
            capture_output=True,
            timeout=60,
        )
    assert done.returncode == 7, done.stderr.decode()
    assert "model.bin" in message.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["termination-log"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed_leaves_no_model(tmp_path: Path, number: signal.Signals) -> None:
    half_way, over = threading.Event(), threading.Event()

    def stall(answer: Answer) -> bool:
        answer.send_response(200)
        answer.send_header("Content-Length", "2000000")
        answer.end_headers()
        answer.wfile.write(bytes(1_500_000))
        answer.wfile.flush()
        half_way.set()
        over.wait(60)
        return True

    with site() as web:
        web.spoil = stall
        arguments = [f"{web.address}/model.bin", str(tmp_path / "model")]
        with (tmp_path / "log").open("w") as output:
            process = subprocess.Popen([*PROGRAM, *arguments], stderr=output)
        assert half_way.wait(60), (tmp_path / "log").read_text()
        wait_until(lambda: list(tmp_path.glob(f"{PREFIX}*")), "what was sent is received")
        (tmp_path / "log").unlink()
        process.send_signal(number)
        over.set()
        assert process.wait(60) == (-9 if number == signal.SIGKILL else 143)
        left = [path.name for path in tmp_path.iterdir()]
        assert [name.startswith(PREFIX) for name in left] == [True]
        web.spoil, web.files["/model.bin"] = None, b"whole"
        assert run(arguments, {}) == 0
    assert contents(tmp_path) == {"model/model.bin": b"whole"}


def test_a_connection_that_breaks_is_opened_again_at_the_offset(tmp_path: Path) -> None:
    opened = []

    class Opening:
        def __init__(self, start: int, end: int | None, version: str) -> None:
            opened.append(start)
            self.body = Body(iter([b"abc"]), start, 6)

        def __enter__(self) -> Body:
            return self.body

        def __exit__(self, *_: object) -> None:
            pass

    download("m", [RemoteFile("m", Opening)], tmp_path, patience=Patience(first_pause=0))
    assert opened == [0, 3]
    assert (tmp_path / "m").read_bytes() == b"abcabc"
