"""Large files in parts, downloads that another process goes on with, and servers that mean no good."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.pods.storage_initializer.sites import Answer, Site
from tests.waiting import wait_until

from isvc.pods.storage_initializer import fetching
from isvc.pods.storage_initializer.placement import PREFIX
from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.progress import Progress

PROGRAM = [sys.executable, "-m", "isvc.pods.storage_initializer"]
MODEL = random.Random(0).randbytes(4_800_000)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PART", 1_000_000)
    monkeypatch.setattr(fetching, "ENOUGH", 1000)


def bring(site: Site, dest: Path) -> tuple[int, str]:
    message = dest.parent / "termination-log"
    message.unlink(missing_ok=True)
    status = run([f"{site.address}/model.bin", str(dest)], {"TERMINATION_MESSAGE_PATH": str(message)})
    return status, message.read_text() if message.exists() else ""


def ranges(site: Site) -> list[str | None]:
    return [headers.get("range") for _, headers in site.requests]


def test_a_large_file_comes_in_parts(web: Site, tmp_path: Path, in_parts: None) -> None:
    web.files["/model.bin"] = MODEL
    web.headers["Accept-Ranges"] = "bytes"
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL
    others = {"bytes=1000000-1999999", "bytes=2000000-2999999", "bytes=3000000-3999999", "bytes=4000000-"}
    assert (ranges(web)[0], set(ranges(web)[1:])) == (None, others)
    assert len({headers["if-range"] for _, headers in web.requests[1:]}) == 1


@pytest.mark.parametrize("checksum", [False, True])
def test_parts_go_on_where_their_connections_break(
    web: Site, tmp_path: Path, in_parts: None, checksum: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = itertools.count()

    def cut_often(answer: Answer) -> bool:
        answer.give(MODEL, cut_after=123_456 if next(count) < 20 else None)
        return True

    web.headers["Accept-Ranges"] = "bytes"
    if checksum:
        digest = hashlib.sha256(MODEL).digest()
        web.headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(digest).decode()}:"
    web.spoil = cut_often
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL


def test_a_file_that_changes_between_its_parts_is_never_mixed(web: Site, tmp_path: Path, in_parts: None) -> None:
    """Three times it changes under way; the fourth is whole, and of one piece."""
    versions = [bytes([number]) * 4_800_000 for number in range(4)]
    asked = itertools.count()

    def change(answer: Answer) -> bool:
        answer.give(versions[min(next(asked) // 3, 3)])
        return True

    web.headers["Accept-Ranges"] = "bytes"
    web.spoil = change
    assert bring(web, tmp_path / "model") == (0, "")
    assert set((tmp_path / "model/model.bin").read_bytes()) in ({0}, {1}, {2}, {3})


def test_the_first_part_is_of_the_same_file_as_the_others(web: Site, tmp_path: Path, in_parts: None) -> None:
    """Its connection breaks before any of it has come, and then it is another file."""
    old, new = b"old" * 1_600_000, b"new" * 1_600_000
    asked_for_the_first = itertools.count()
    content = old

    def change(answer: Answer) -> bool:
        nonlocal content
        if answer.headers.get("Range", "bytes=0-").startswith("bytes=0-"):
            if next(asked_for_the_first) == 0:
                answer.give(old, cut_after=0)
                return True
            content = new
        answer.give(content)
        return True

    web.headers["Accept-Ranges"] = "bytes"
    web.spoil = change
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == new


def test_others_may_bring_what_the_first_connection_left(web: Site, tmp_path: Path, in_parts: None) -> None:
    is_cut = threading.Event()

    def cut_the_first(answer: Answer) -> bool:
        if "Range" in answer.headers:
            is_cut.wait(30)
            answer.give(MODEL)
        else:
            answer.give(MODEL, cut_after=123)
            answer.connection.shutdown(socket.SHUT_RDWR)
            is_cut.set()
        return True

    web.headers["Accept-Ranges"] = "bytes"
    web.spoil = cut_the_first
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL


def test_a_file_that_never_stays_the_same_is_given_up(web: Site, tmp_path: Path, in_parts: None) -> None:
    asked = itertools.count()

    def change(answer: Answer) -> bool:
        answer.give(bytes([next(asked) % 256]) * 4_800_000)
        return True

    web.headers["Accept-Ranges"] = "bytes"
    web.spoil = change
    status, message = bring(web, tmp_path / "model")
    assert status == 1
    assert "the file changed" in message
    assert not (tmp_path / "model").exists()


def test_without_a_tag_nothing_is_put_together(web: Site, tmp_path: Path, in_parts: None) -> None:
    def without_tag(answer: Answer) -> bool:
        first = len(web.requests) == 1
        answer.send_response(200)
        answer.send_header("Content-Length", str(len(MODEL)))
        answer.send_header("Accept-Ranges", "bytes")
        answer.end_headers()
        answer.wfile.write(MODEL[:1_000_000] if first else MODEL)
        answer.close_connection = True
        return True

    web.spoil = without_tag
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL
    assert ranges(web) == [None, None]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_another_process_goes_on(web: Site, tmp_path: Path, number: signal.Signals) -> None:
    stuck = threading.Event()

    def stall_once(answer: Answer) -> bool:
        if len(web.requests) > 1:
            return False
        answer.give(MODEL, cut_after=3_000_000)
        for at in range(3_000_000, 3_001_000):  # notes are taken when something comes, once a second
            if stuck.wait(0.05):
                break
            answer.wfile.write(MODEL[at : at + 1])
        return True

    web.files["/model.bin"] = MODEL
    web.spoil = stall_once
    arguments = [f"{web.address}/model.bin", str(tmp_path / "model")]
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: _noted(tmp_path) >= 3_000_000, "what was sent is noted")
    process.send_signal(number)
    process.wait(60)
    stuck.set()
    assert run(arguments, {}) == 0
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL
    assert re.fullmatch(r"bytes=300\d{4}-", ranges(web)[1] or "")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def _noted(home: Path) -> int:
    """How much the notes of an unfinished download say has arrived."""
    notes = [json.loads(path.read_text()) for path in home.glob(f"{PREFIX}*/model.partial/*") if not path.suffix]
    return sum(part[2] for note in notes for part in note["parts"])


def _cut(content: bytes) -> Callable[[Answer], bool]:
    """Gives 2 MB, and no more."""

    def cut(answer: Answer) -> bool:
        answer.give(content, cut_after=2_000_000 if "Range" not in answer.headers else 0)
        return True

    return cut


def test_another_process_starts_over_when_the_file_changed(web: Site, tmp_path: Path) -> None:
    web.spoil = _cut(b"old" * 1_000_000)
    assert bring(web, tmp_path / "model")[0] == 5
    assert list(tmp_path.glob(f"{PREFIX}*"))
    web.spoil, web.files["/model.bin"] = None, MODEL
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == MODEL


def test_notes_of_before_the_machine_was_started_count_for_nothing(web: Site, tmp_path: Path) -> None:
    web.spoil = _cut(MODEL)
    assert bring(web, tmp_path / "model")[0] == 5
    [note] = tmp_path.glob(f"{PREFIX}*/model.partial/*")
    note.write_text(note.read_text().replace(json.loads(note.read_text())["boot"], "another"))
    web.spoil, web.files["/model.bin"] = None, MODEL
    web.requests.clear()
    assert bring(web, tmp_path / "model") == (0, "")
    assert ranges(web) == [None]


# Servers that mean no good


def _answering(
    *pieces: bytes, headers: bytes = b"", then: Callable[[Answer], None] | None = None
) -> Callable[[Answer], bool]:
    def answer_so(answer: Answer) -> bool:
        answer.wfile.write(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n" + b"".join(pieces))
        answer.close_connection = True
        if then is not None:
            then(answer)
        return True

    return answer_so


def test_a_server_that_hardly_moves_is_left(web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.storage_initializer.web.SLOW_SECONDS", 0.05)

    def trickle(answer: Answer) -> None:
        for _ in range(10):
            threading.Event().wait(0.01)
            with suppress(OSError):
                answer.wfile.write(b"x")

    web.spoil = _answering(headers=b"Content-Length: 1000000\r\nETag: x\r\n", then=trickle)
    status, message = bring(web, tmp_path / "model")
    assert status == 5
    assert "bytes came in" in message


def test_a_server_whose_headers_never_end_is_left(web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.storage_initializer.web_policy.HEAD_SECONDS", 0.1)
    over = threading.Event()

    def never(answer: Answer) -> bool:
        answer.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not over.wait(0.01):
            try:
                answer.wfile.write(b"x")
            except OSError:
                break
        return True

    web.spoil = never
    status, message = bring(web, tmp_path / "model")
    over.set()
    assert status == 5
    assert "gave up after 5 tries" in message


def test_a_file_without_an_end_leaves_room_on_the_disk(
    web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SPACE_LOOK", 1_000_000)
    real = os.statvfs(tmp_path)

    def nearly_full(path: object) -> os.statvfs_result:
        fields = list(real)
        fields[4] = real.f_blocks // 25  # f_bavail
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", nearly_full)

    def for_ever(answer: Answer) -> None:
        try:
            while True:
                answer.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            pass

    web.spoil = _answering(headers=b"Transfer-Encoding: chunked\r\n", then=for_ever)
    status, message = bring(web, tmp_path / "model")
    assert status == 7
    assert "does not say how long it is" in message
    assert [path.name for path in tmp_path.iterdir()] == ["termination-log"]


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        (_answering(b"short", headers=b"Content-Length: 1000000\r\n"), 5),
        (_answering(headers=b"Content-Length: 999999999999999999\r\n"), 7),
        (_answering(b"5\r\nabc", headers=b"Transfer-Encoding: chunked\r\n"), 5),
        (_answering(b"zz\r\nabc\r\n0\r\n\r\n", headers=b"Transfer-Encoding: chunked\r\n"), 5),
        (_answering(b"x", headers=b"X: " + b"y" * 70_000 + b"\r\n"), 5),
        (_answering(b"x", headers=b"".join(b"X-%d: y\r\n" % number for number in range(200))), 5),
    ],
)
def test_lies_about_lengths(web: Site, tmp_path: Path, spoil: Callable[[Answer], bool], status: int) -> None:
    web.spoil = spoil
    assert bring(web, tmp_path / "model")[0] == status
    assert not (tmp_path / "model").exists()


def test_more_than_was_announced_is_not_taken(web: Site, tmp_path: Path) -> None:
    """The length that a server announces is where its answer ends; what comes after belongs to nobody."""
    web.spoil = _answering(b"12345", b"and more", headers=b"Content-Length: 5\r\nContent-Type: a/b\r\n")
    assert bring(web, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/model.bin").read_bytes() == b"12345"


def test_a_range_that_was_not_asked_for_is_refused(web: Site, tmp_path: Path) -> None:
    def other_part(answer: Answer) -> bool:
        if len(web.requests) == 1:
            answer.give(MODEL, cut_after=1000)
        else:
            answer.wfile.write(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 7-9/4800000\r\nContent-Length: 3\r\n\r\nabc")
        return True

    web.spoil = other_part
    assert bring(web, tmp_path / "model")[0] == 1
    assert not (tmp_path / "model").exists()


def test_progress_is_on_standard_output_with_its_speed(web: Site, tmp_path: Path) -> None:
    web.files["/model.bin"] = MODEL
    done = subprocess.run([*PROGRAM, f"{web.address}/model.bin", str(tmp_path / "m")], capture_output=True, text=True)
    assert "1 files, 4.6 MiB" in done.stdout
    assert "MiB/s" in done.stdout
    assert done.stderr == ""


def test_progress_says_how_far_and_how_fast(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = iter([0.0, 6.0, 6.0, 6.0])
    Progress("m", 4 << 20, lambda: next(clock)).add(3 << 20)
    assert caplog.messages == ["m: 3.0 MiB of 4.0 MiB (75%), 512.0 KiB/s"]
