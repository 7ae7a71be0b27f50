"""What of a service account reaches a pod."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from isvc.local.node.volumes import folders
from isvc.local.node.volumes.tokens import Token, Wanted, api_server_env, wanted_tokens, write_kubeconfig

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SOURCES = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    {"serviceAccountToken": {"path": "vault/token", "audience": "vault"}},
]
POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"volumes": [{"name": "access", "projected": {"sources": SOURCES}}]},
}


def test_each_audience_has_a_token_in_its_file(tmp_path: Path) -> None:
    ours, vault = Wanted("", 3607), Wanted("vault", 3600)
    assert wanted_tokens(POD) == {ours, vault}
    files = folders.Files(tokens={ours: Token("one", NOW), vault: Token("two", NOW)})
    folder = folders.prepare(POD, files, tmp_path, tmp_path / "claims")["access"]
    assert ((folder / "token").read_text(), (folder / "vault" / "token").read_text()) == ("one", "two")
    assert (folder / "token").stat().st_mode & 0o077 == 0
    renewed = folders.Files(tokens={ours: Token("three", NOW), vault: Token("two", NOW)})
    folders.prepare(POD, renewed, tmp_path, tmp_path / "claims")
    assert (folder / "token").read_text() == "three"


def test_a_pod_whose_account_does_not_exist_runs_without(tmp_path: Path) -> None:
    folder = folders.prepare(POD, folders.Files(), tmp_path, tmp_path / "claims")["access"]
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_token_is_renewed_well_before_it_ends() -> None:
    assert Token("t", NOW + timedelta(hours=1)).renewal_in(NOW) == 2880


def test_a_kubeconfig_leads_to_the_files_of_the_account(tmp_path: Path) -> None:
    env = api_server_env("https://127.0.0.1:6443")
    assert env["KUBERNETES_SERVICE_PORT"] == "6443"
    write_kubeconfig(tmp_path / "kubeconfig", tmp_path / "account", env, "team")
    config = json.loads((tmp_path / "kubeconfig").read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert config["users"][0]["user"] == {"tokenFile": str(tmp_path / "account" / "token")}
    assert config["contexts"][0]["context"]["namespace"] == "team"
