"""Models of ModelScope, from a small site that speaks its HTTP interface."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.pods.storage_initializer.files import contents
from tests.unit.pods.storage_initializer.sites import Answer, Site, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.schemes import modelscope

FILES = {"model.bin": bytes(range(256)) * 4000, "config.json": b"{}", "deep/er/tokens.txt": b"a b"}


class Hub:
    def __init__(self, made: Site) -> None:
        self.site, self.lies, self.cut = made, dict[str, Any](), False
        made.spoil = self.answer

    def answer(self, answer: Answer) -> bool:
        parts = urlsplit(answer.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        known = parts.path.startswith("/api/v1/models/org/iris/") or "FilePath" in query
        allowed = answer.headers.get("Authorization") == "Bearer t0ken-1"
        if not known or not allowed or query.get("Revision") not in ("master", "v2"):
            answer.send_error(404)
        elif parts.path == "/api/v1/models/org/iris/repo/files":
            entries = self.lies.get("Files") or self.entries(query.get("Root", ""))
            answer.give(json.dumps({"Code": 200, "Data": {"Files": entries}}).encode())
        else:
            cut, self.cut = self.cut, False
            answer.give(FILES[query["FilePath"]], cut_after=1000 if cut else None)
        return True

    def entries(self, root: str) -> list[dict[str, Any]]:
        inside = f"{root}/" if root else ""
        below = {path.removeprefix(inside).partition("/")[0] for path in FILES if path.startswith(inside)}
        return [self.entry(f"{inside}{name}") for name in sorted(below)]

    def entry(self, path: str) -> dict[str, Any]:
        if path not in FILES:
            return {"Path": path, "Type": "tree", "Size": 0}
        digest = hashlib.sha256(FILES[path]).hexdigest()
        return {"Path": path, "Type": "blob", "Size": len(FILES[path]), "Sha256": digest, **self.lies}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with site() as made:
        yield Hub(made)


def bring(hub: Hub, dest: Path, uri: str = "modelscope://org/iris", **environment: str) -> int:
    known = {"MODELSCOPE_ENDPOINT": hub.site.address, "MODELSCOPE_API_TOKEN": "t0ken-1"}
    return run([uri, str(dest)], {**known, **environment})


@pytest.mark.parametrize("uri", ["modelscope://org/iris", "modelscope://org/iris:v2"])
def test_a_model_after_a_broken_connection(hub: Hub, tmp_path: Path, uri: str) -> None:
    hub.cut = True
    assert bring(hub, tmp_path / "model", uri) == 0
    assert contents(tmp_path / "model") == FILES


def test_patterns_choose_files(hub: Hub, tmp_path: Path) -> None:
    assert bring(hub, tmp_path / "model", STORAGE_ALLOW_PATTERNS="*.json") == 0
    assert contents(tmp_path / "model") == {"config.json": b"{}"}


@pytest.mark.parametrize(
    ("lies", "status"),
    [
        ({"Sha256": "0" * 64}, 6),
        ({"Size": 1}, 6),
        ({"Size": 1 << 60}, 7),
        ({"Path": "../../evil"}, 6),
        ({"Files": [{"Path": "x", "Type": "tree"}]}, 6),
        ({"Files": ["x"]}, 6),
        ({"Files": [{"Path": f"m{number}", "Size": 1} for number in range(modelscope.MOST_ENTRIES)]}, 1),
    ],
)
def test_listings_that_lie(hub: Hub, tmp_path: Path, lies: dict[str, Any], status: int) -> None:
    hub.lies = lies
    assert bring(hub, tmp_path / "models" / "model") == status
    assert not list(tmp_path.rglob("evil"))
    assert not (tmp_path / "models" / "model").exists()


@pytest.mark.parametrize(
    ("uri", "status"), [("modelscope://org/other", 3), ("modelscope://org/iris:v9", 3), ("modelscope://org", 1)]
)
def test_addresses(hub: Hub, tmp_path: Path, uri: str, status: int) -> None:
    assert bring(hub, tmp_path / "model", uri) == status
