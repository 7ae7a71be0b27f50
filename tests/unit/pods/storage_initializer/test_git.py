"""Git repositories over HTTP, from git's own server, with what Git LFS keeps beside them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.pods.storage_initializer.sites import Answer, Site, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.schemes import git
from isvc.pods.stores.settings import Settings

WEIGHTS = b"weights" * 10_000
OID = hashlib.sha256(WEIGHTS).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {len(WEIGHTS)}\n"
BACKEND = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()


def _git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work tree whose commits are served at /model.git."""
    folder = tmp_path / "served" / "work"
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "config.json").write_text("{}")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "deep").mkdir()
    (folder / "deep" / "model.bin").write_bytes(b"small")
    (folder / "link").symlink_to("deep/model.bin")
    _commit(folder)
    return folder


def _commit(work: Path) -> None:
    _git(work, "add", "--all")
    _git(work, "commit", "--quiet", "--message=x")


@pytest.fixture
def server(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """git http-backend, as a CGI program of a small server."""

    def cgi(answer: Answer) -> bool:
        parts = urlsplit(answer.path)
        if not parts.path.startswith("/model.git/") or "lfs" in parts.path:
            return _large(answer)
        if answer.headers.get("Authorization") != f"Basic {base64.b64encode(b'me:Tr0ub4dor').decode()}":
            answer.send_error(401)
            return True
        given = {"CONTENT_TYPE": "Content-Type", "CONTENT_LENGTH": "Content-Length", "GIT_PROTOCOL": "Git-Protocol"}
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(work.parent),
            "GIT_PROJECT_ROOT": str(work.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path.replace("model.git", "work/.git"),
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": answer.command,
            **{name: answer.headers.get(header, "") for name, header in given.items()},
        }
        body = answer.rfile.read(int(env["CONTENT_LENGTH"] or 0))
        done = subprocess.run([f"{BACKEND}/git-http-backend"], env=env, input=body, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        status = next((line[8:] for line in head.split(b"\r\n") if line.startswith(b"Status: ")), b"200 OK")
        answer.wfile.write(
            b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\nContent-Length: %d\r\n\r\n" % len(content) + content
        )
        return True

    def _large(answer: Answer) -> bool:
        if answer.path == "/model.git/info/lfs/objects/batch":
            asked = json.loads(answer.rfile.read(int(answer.headers["Content-Length"])))
            download = {"href": f"{made.address}/large", "header": {"X-Key": "k"}}
            objects = [{**each, "actions": {"download": download}} for each in asked["objects"]]
            answer.give(json.dumps({"objects": objects}).encode())
        elif answer.path == "/large" and answer.headers.get("X-Key") == "k":
            answer.give(WEIGHTS)
        else:
            answer.send_error(404)
        return True

    monkeypatch.setattr(Answer, "do_POST", Answer.do_GET, raising=False)
    with site() as made:
        made.spoil = cgi
        yield made


def bring(server: Site, dest: Path, suffix: str = "", **environment: str) -> tuple[int, str]:
    message = dest.parent / "termination-log"
    message.unlink(missing_ok=True)
    known = {"GIT_USERNAME": "me", "GIT_PASSWORD": "Tr0ub4dor", "TERMINATION_MESSAGE_PATH": str(message)}
    status = run([f"{server.address}/model.git{suffix}", str(dest)], {**known, **environment})
    return status, message.read_text() if message.exists() else ""


def test_the_newest_commit_without_its_history(server: Site, tmp_path: Path) -> None:
    dest = tmp_path / "model"
    assert bring(server, dest) == (0, "")
    files = {path.relative_to(dest).as_posix() for path in dest.rglob("*") if path.is_file()}
    assert files == {"config.json", "run.sh", "deep/model.bin", "link"}
    assert (dest / "link").readlink() == Path("deep/model.bin")
    assert os.access(dest / "run.sh", os.X_OK)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("annotated", [False, True])
def test_a_branch_or_a_tag(server: Site, work: Path, tmp_path: Path, annotated: bool) -> None:
    _git(work, "tag", *(["--annotate", "--message=x"] if annotated else []), "v1")
    (work / "config.json").write_text('{"newer": true}')
    _commit(work)
    assert bring(server, tmp_path / "tagged", "#v1")[0] == 0
    assert (tmp_path / "tagged/config.json").read_text() == "{}"
    assert bring(server, tmp_path / "branch", "#main")[0] == 0
    assert (tmp_path / "branch/config.json").read_text() == '{"newer": true}'
    status, message = bring(server, tmp_path / "none", "#v2")
    assert (status, "no branch or tag 'v2'" in message) == (3, True)


def test_what_git_lfs_keeps(server: Site, work: Path, tmp_path: Path) -> None:
    (work / "deep" / "model.bin").write_text(POINTER)
    _commit(work)
    assert bring(server, tmp_path / "model") == (0, "")
    assert (tmp_path / "model/deep/model.bin").read_bytes() == WEIGHTS
    assert (tmp_path / "model/config.json").read_text() == "{}"


def test_a_login_that_is_wrong(server: Site, tmp_path: Path) -> None:
    status, message = bring(server, tmp_path / "model", GIT_PASSWORD="other-password")
    assert (status, "401" in message, "other-password" in message) == (4, True, False)


def test_no_repository(server: Site, tmp_path: Path) -> None:
    assert run([f"{server.address}/other.git", str(tmp_path / "model")], {}) == 3


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_links_out_of_the_folder_are_refused(server: Site, work: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").write_text("secret")
    (work / "evil").symlink_to(target)
    _commit(work)
    status, _ = bring(server, tmp_path / "models" / "model")
    assert status in (0, 6)
    assert not (tmp_path / "models" / "model" / "evil").exists()


def test_paths_out_of_the_folder_are_refused(server: Site, work: Path, tmp_path: Path) -> None:
    """git itself makes no such tree: it is written by hand."""
    blob = _hash(work, "blob", b"evil")
    inner = _hash(work, "tree", b"100644 x\0" + bytes.fromhex(blob))
    outer = _hash(work, "tree", b"40000 ..\0" + bytes.fromhex(inner))
    who = "a <a@b> 0 +0000"
    commit = _hash(work, "commit", f"tree {outer}\nauthor {who}\ncommitter {who}\n\nx\n".encode())
    _git(work, "update-ref", "refs/heads/evil", commit)
    assert bring(server, tmp_path / "models" / "model", "#evil")[0] == 6
    assert not list((tmp_path / "models").rglob("x"))


def test_folders_within_folders_that_hold_nothing_come_to_an_end(
    server: Site, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten levels, each of which holds the next ten times: ten objects, and ten thousand million folders."""
    monkeypatch.setattr("isvc.pods.storage_initializer.unpacking.UNSUSPICIOUS_SIZE", 1 << 20)
    tree = _hash(work, "tree", b"")
    for _ in range(10):
        tree = _hash(work, "tree", b"".join(b"40000 %d\0" % number + bytes.fromhex(tree) for number in range(10)))
    who = "a <a@b> 0 +0000"
    commit = _hash(work, "commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\nx\n".encode())
    _git(work, "update-ref", "refs/heads/evil", commit)
    status, message = bring(server, tmp_path / "models" / "model", "#evil")
    assert status == 6
    assert "made to fill disks" in message


def test_a_list_of_branches_without_an_end_is_left(
    server: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(answer: Answer) -> bool:
        answer.send_response(200)
        answer.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        answer.end_headers()
        answer.wfile.write(b"001e# service=git-upload-pack\n0000")
        with contextlib.suppress(ConnectionError):
            for number in range(1 << 20):
                line = b"%040d refs/heads/%d\n" % (number, number)
                answer.wfile.write(b"%04x" % (len(line) + 4) + line)
            served_all.append(True)
        answer.close_connection = True
        return True

    served_all: list[bool] = []
    monkeypatch.setattr(git, "LARGEST_JSON", 1 << 20)
    server.spoil = endless
    status, message = bring(server, tmp_path / "models" / "model")
    assert (status, served_all) == (6, [])
    assert "has no end" in message


def _hash(work: Path, kind: str, content: bytes) -> str:
    command = ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"]
    return subprocess.run(command, cwd=work, input=content, capture_output=True, check=True).stdout.decode().strip()


def test_addresses() -> None:
    settings = Settings.read({"GIT_PASSWORD": "p"})
    found = git.parse("https://me@host:8443/team/model.git#v1%2F2", settings)
    assert (found.url, found.name) == ("https://host:8443/team/model.git", "v1/2")
    assert found.headers == {"Authorization": f"Basic {base64.b64encode(b'me:p').decode()}"}
    assert git.parse("https://host/model.git", Settings.read({})).headers == {}
