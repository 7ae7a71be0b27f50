"""Downloads over WebHDFS, from a small namenode that sends readers to itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, Site, private_ca, refusing, site

from isvc.pods.storage_initializer.program import run

FILES = {"/models/iris/model.bin": b"weights" * 1000, "/models/iris/deep/config.json": b"{}"}


class Namenode:
    """Answers the three operations that reading needs; `cut` breaks the first read of a file."""

    def __init__(self, made: Site) -> None:
        self.site = made
        self.cut = False
        made.spoil = self.answer

    def answer(self, answer: Answer) -> bool:
        parts = urlsplit(answer.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/webhdfs/v1")
        if query["op"] == "OPEN":
            return self.read(answer, path, query)
        below = [name for name in FILES if name.startswith(f"{path}/")]
        if path not in FILES and not below:
            answer.send_error(404)
        elif query["op"] == "GETFILESTATUS":
            self.tell(answer, {"FileStatus": self.status(path, "")})
        else:
            names = sorted({name.removeprefix(f"{path}/").partition("/")[0] for name in below})
            self.tell(answer, {"FileStatuses": {"FileStatus": [self.status(f"{path}/{n}", n) for n in names]}})
        return True

    def read(self, answer: Answer, path: str, query: dict[str, str]) -> bool:
        if "datanode" not in query:
            answer.send_response(307)
            answer.send_header("Location", f"{self.site.address}{answer.path}&datanode=1")
            answer.send_header("Content-Length", "0")
            answer.end_headers()
            return True
        content = FILES[path][int(query["offset"]) :]
        answer.give(content, cut_after=3000 if self.cut and query["offset"] == "0" else None)
        return True

    def status(self, path: str, name: str) -> dict[str, object]:
        kind = "FILE" if path in FILES else "DIRECTORY"
        return {"type": kind, "length": len(FILES.get(path, b"")), "pathSuffix": name}

    def tell(self, answer: Answer, document: object) -> None:
        answer.give(json.dumps(document).encode())


@pytest.fixture
def namenode() -> Iterator[Namenode]:
    with site() as made:
        yield Namenode(made)


def secret(folder: Path, **values: str) -> dict[str, str]:
    folder.mkdir()
    for name, value in values.items():
        (folder / name).write_text(value)
    return {"HDFS_SECRET_DIR": str(folder)}


@pytest.mark.parametrize("uri", ["hdfs://models/iris", "webhdfs://models/iris/"])
def test_a_folder_after_a_broken_connection(namenode: Namenode, tmp_path: Path, uri: str) -> None:
    namenode.cut = True
    variables = secret(tmp_path / "secret", HDFS_NAMENODE=f"{namenode.site.address}\n", USER_PROXY="me")
    assert run([uri, str(tmp_path / "model")], variables) == 0
    assert contents(tmp_path / "model") == {
        "model.bin": FILES["/models/iris/model.bin"],
        "deep/config.json": b"{}",
    }
    asked = [path for path, _ in namenode.site.requests]
    assert any("offset=3000" in path for path in asked)
    assert all("doas=me" in path for path in asked)


def test_the_storage_config_secret_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, temporary = tmp_path / "ca", tmp_path / "temporary"
    ca.mkdir()
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with site(private_ca(ca)) as made:
        Namenode(made)
        settings = {
            "type": "hdfs",
            "HDFS_NAMENODE": made.address,
            "HDFS_ROOTPATH": "/models",
            "TLS_CA": base64.b64encode((ca / "cabundle.crt").read_bytes()).decode(),
            "HEADERS": '{"x-team": "blue"}',
        }
        variables = {"STORAGE_CONFIG": json.dumps(settings)}
        assert run(["hdfs://iris/deep/config.json", str(tmp_path / "model")], variables) == 0
        assert made.requests[0][1]["x-team"] == "blue"
    assert list(temporary.iterdir()) == []  # no key is left behind
    assert contents(tmp_path / "model") == {"config.json": b"{}"}


def test_a_namenode_that_stands_by_is_passed_over(namenode: Namenode, tmp_path: Path) -> None:
    with site() as standby:
        standby.spoil = refusing(403)
        nodes = f"{standby.address};{namenode.site.address};http://127.0.0.1:1"
        variables = secret(tmp_path / "secret", HDFS_NAMENODE=nodes)
        assert run(["hdfs://models/iris/deep", str(tmp_path / "model")], variables) == 0
        assert len(standby.requests) == 1
    assert contents(tmp_path / "model") == {"config.json": b"{}"}


@pytest.mark.parametrize(
    ("options", "uri", "status"),
    [({}, "hdfs://nothing", 3), ({"KERBEROS_PRINCIPAL": "p"}, "hdfs://models", 1)],
)
def test_refusals(namenode: Namenode, tmp_path: Path, options: dict[str, str], uri: str, status: int) -> None:
    variables = secret(tmp_path / "secret", HDFS_NAMENODE=namenode.site.address, **options)
    assert run([uri, str(tmp_path / "model")], variables) == status
    assert not (tmp_path / "model").exists()
