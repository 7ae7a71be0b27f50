"""The folder of a node: a model is in it whole or not at all, whatever is killed and when."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from isvc.controllers.localmodelnode.disk import Disk, final_path, incoming_path

KEY, SOURCE = "0123456789abcdef", "gs://models/iris"
#: Completes a download and is killed before one of its calls that change the disk: the one with this number.
KILLED = """
import os, signal, sys
from pathlib import Path
from isvc.controllers.localmodelnode.disk import Disk

left = int(sys.argv[2])
def count(event, arguments):
    global left
    path = str(arguments[0]) if arguments else ""
    writes = event == "open" and arguments[2] & os.O_WRONLY
    if (writes or event in ("os.rename", "os.remove", "os.rmdir", "os.chmod")) and sys.argv[1] in path:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
Disk(Path(sys.argv[1])).complete(sys.argv[3], sys.argv[4], 1.5, 2)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    made = Disk(tmp_path)
    made.take_stock()
    return made


def fill(disk: Disk, text: str = "weights") -> None:
    disk.expect(KEY, SOURCE)
    folder = disk.root / incoming_path(KEY)
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocabulary").write_text("words")
    (folder / "model.bin").write_text(text)


def test_a_download_becomes_a_model_in_one_step(disk: Disk):
    fill(disk)
    assert disk.take_stock().complete == {}
    disk.complete(KEY, SOURCE, 1.5, 2)
    stock = disk.take_stock()
    assert (stock.complete[KEY].seconds, stock.complete[KEY].attempts) == (1.5, 2)
    assert (disk.root / final_path(KEY) / "tokenizer" / "vocabulary").read_text() == "words"
    assert stock.incoming == {}


def test_what_a_job_leaves_beside_files_stops_nothing(disk: Disk):
    fill(disk)
    folder = disk.root / incoming_path(KEY)
    os.mkfifo(folder / "pipe")
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    (folder / "nowhere").symlink_to("/does/not/exist")
    disk.complete(KEY, SOURCE, 1.5, 2)
    assert KEY in disk.take_stock().complete


def test_any_user_may_fill_a_download_and_none_but_ours_may_change_a_model(disk: Disk):
    disk.expect(KEY, SOURCE)
    assert (disk.root / incoming_path(KEY)).stat().st_mode & 0o777 == 0o777
    fill_again = disk.root / incoming_path(KEY) / "model.bin"
    fill_again.write_text("weights")
    disk.complete(KEY, SOURCE, None, 1)
    assert (disk.root / final_path(KEY)).stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("call", range(12))
def test_a_kill_at_any_moment_leaves_the_whole_model_or_none(disk: Disk, call: int):
    """Each start after it finds a state that it can go on from."""
    fill(disk)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(disk.root), str(call), KEY, SOURCE], check=False)
    final = disk.root / final_path(KEY)
    if final.exists():
        assert (final / "model.bin").read_text() == "weights"
        assert (final / "tokenizer" / "vocabulary").read_text() == "words"
    stock = disk.take_stock()
    if KEY not in stock.complete:
        assert ended.returncode == -signal.SIGKILL
        assert KEY in stock.arrived, "the download is still there, and its Job has ended well"
        disk.complete(KEY, SOURCE, 1.5, 2)
        stock = disk.take_stock()
    assert stock.complete[KEY].bytes > 0
    assert sorted(os.listdir(disk.root / "models")) == [".downloads", KEY]
    assert os.listdir(disk.root / "models" / ".downloads") == [f"{KEY}.json"]


def test_a_model_of_kserve_counts_once_it_is_adopted(disk: Disk):
    folder = disk.root / final_path(KEY)
    folder.mkdir()
    (folder / "model.bin").write_text("weights")
    assert disk.take_stock().unproven == {KEY}
    disk.adopt(KEY, SOURCE)
    assert KEY in Disk(disk.root).take_stock().complete


def test_a_folder_that_took_the_place_of_a_model_is_none(disk: Disk):
    fill(disk)
    disk.complete(KEY, SOURCE, None, 1)
    final = disk.root / final_path(KEY)
    final.rename(disk.root / "elsewhere")
    final.mkdir()
    assert disk.take_stock().empty == {KEY}
    (final / "half.bin").write_text("wei")
    assert disk.take_stock().unproven == {KEY}


def test_a_complete_download_replaces_what_proves_nothing(disk: Disk):
    half = disk.root / final_path(KEY)
    half.mkdir()
    (half / "half.bin").write_text("wei")
    fill(disk)
    disk.complete(KEY, SOURCE, None, 1)
    assert sorted(os.listdir(half)) == ["model.bin", "tokenizer"]


def test_a_download_from_another_source_of_the_same_key_is_never_this_model(disk: Disk):
    fill(disk)
    disk.complete(KEY, "gs://evil/twin", None, 1)
    assert disk.take_stock().complete == {}
    fill(disk)
    disk.expect(KEY, "gs://evil/twin")
    assert disk.take_stock().arrived == frozenset()


def test_what_an_earlier_storage_initializer_left_is_no_part_of_the_model(disk: Disk):
    fill(disk)
    left = disk.root / incoming_path(KEY) / ".isvc-incoming-abc"
    left.mkdir()
    (left / "half.bin").write_text("wei")
    disk.complete(KEY, SOURCE, None, 1)
    assert sorted(os.listdir(disk.root / final_path(KEY))) == ["model.bin", "tokenizer"]


def test_files_and_links_of_a_model_that_are_named_as_what_is_left_keep_no_model_from_its_node(disk: Disk):
    fill(disk)
    incoming = disk.root / incoming_path(KEY)
    (incoming / ".isvc-incoming-file").write_text("x")
    (incoming / ".isvc-incoming-link").symlink_to(disk.root)
    disk.complete(KEY, SOURCE, None, 1)
    assert KEY in disk.take_stock().complete
    assert {".isvc-incoming-file", ".isvc-incoming-link"} < set(os.listdir(disk.root / final_path(KEY)))


def test_what_is_removed_is_gone_and_its_receipt_too(disk: Disk):
    fill(disk)
    disk.complete(KEY, SOURCE, None, 1)
    disk.remove(KEY)
    assert os.listdir(disk.root / "models") == [".downloads"]
    assert os.listdir(disk.root / "models" / ".downloads") == []
    disk.remove(KEY)


def test_a_removal_that_was_killed_is_finished_at_the_next_look(disk: Disk):
    left = disk.root / "models" / f".removed-{KEY}"
    left.mkdir()
    (left / "model.bin").write_text("weights")
    stock = disk.take_stock()
    assert stock.folders == frozenset()
    assert not left.exists()


def test_a_folder_that_cannot_be_used_is_a_problem_and_no_crash(tmp_path: Path):
    (tmp_path / "models").write_text("a file")
    stock = Disk(tmp_path).take_stock()
    assert str(tmp_path / "models") in stock.problem


def test_nodes_that_share_a_folder_know_what_others_want_until_they_are_forgotten(disk: Disk):
    assert disk.share("a", ["x", "y"]) == frozenset()
    assert disk.share("b", ["y"]) == {"x", "y"}
    assert disk.share("a", []) == {"y"}
    os.utime(disk.root / "models" / ".downloads" / "b.node", (0, 0))
    assert disk.share("a", []) == frozenset()
    assert os.listdir(disk.root / "models" / ".downloads") == ["a.node"]
