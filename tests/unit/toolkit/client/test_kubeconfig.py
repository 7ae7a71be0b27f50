from __future__ import annotations

import base64
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from isvc.toolkit.client import kubeconfig
from isvc.toolkit.client.kubeconfig import ExecPlugin
from isvc.toolkit.failure import ConfigError

DOCUMENT: dict[str, Any] = {
    "current-context": "main",
    "clusters": [
        {"name": "c", "cluster": {"server": "https://cluster.example:6443/", "certificate-authority-data": "Q0E="}}
    ],
    "users": [{"name": "u", "user": {"token": "secret-token"}}],
    "contexts": [
        {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
        {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
        {"name": "nobody", "context": {"cluster": "c", "user": "missing"}},
    ],
}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No kubeconfig of whoever runs the tests."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def write(tmp_path):
    def write(document: object, name: str = "config") -> Path:
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        return path

    return write


def with_user(**user: object) -> dict:
    document = copy.deepcopy(DOCUMENT)
    document["users"][0]["user"] = user
    return document


def test_reads_server_authority_token_and_namespace(write):
    config = kubeconfig.load(write(DOCUMENT))
    assert (config.server, config.ca, config.token, config.namespace) == (
        "https://cluster.example:6443",
        b"CA",
        "secret-token",
        "team",
    )


def test_secrets_do_not_show_in_its_text(write):
    assert "secret-token" not in repr(kubeconfig.load(write(DOCUMENT)))


@pytest.mark.parametrize(
    ("document", "context", "message"),
    [
        ("{unclosed: [", None, "is not valid YAML"),
        ("just words", None, "a mapping was expected"),
        ({"contexts": "main", "current-context": "main"}, None, "'contexts' has to be a list"),
        ({"contexts": ["main"], "current-context": "main"}, None, "'contexts' has to be a list"),
        ("", None, "no current-context is set"),
        (DOCUMENT, "staging", "no context 'staging'; it has: lost, main, nobody"),
        (DOCUMENT, "lost", "names cluster 'nowhere', not defined"),
        (DOCUMENT, "nobody", "names user 'missing', not defined"),
        (with_user(**{"client-certificate-data": "not base64!"}), None, "client-certificate-data is not valid base64"),
        (with_user(**{"client-certificate": "missing.pem"}), None, "cannot read .*missing.pem: No such file"),
        (with_user(exec={"args": []}), None, "malformed entry"),
        ({**DOCUMENT, "clusters": [{"name": "c", "cluster": {"server": "ftp://x"}}]}, None, "not an http"),
    ],
)
def test_bad_input_is_one_clear_line(write, document, context, message):
    with pytest.raises(ConfigError, match=message) as caught:
        kubeconfig.load(write(document), context)
    assert "\n" not in str(caught.value)


def test_a_way_to_log_in_that_is_not_known_is_named_where_there_is_no_other(write):
    """Otherwise the cluster would only be heard to say that it does not know the user."""
    provider = {"name": "oidc", "config": {"id-token": "secret"}}
    with pytest.raises(ConfigError, match=r"auth-provider oidc.*exec") as raised:
        kubeconfig.load(write(with_user(**{"auth-provider": provider})))
    assert "secret" not in str(raised.value)
    assert kubeconfig.load(write(with_user(**{"auth-provider": provider, "token": "t"}))).token == "t"


def test_a_password_in_the_address_is_refused_and_not_shown(write):
    cluster = {"name": "c", "cluster": {"server": "https://me:secret@cluster.example"}}
    with pytest.raises(ConfigError, match="server holds a name or password") as caught:
        kubeconfig.load(write({**DOCUMENT, "clusters": [cluster]}))
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_told_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*absent: No such file"):
        kubeconfig.load(tmp_path / "absent")


def test_no_configuration_at_all_says_where_it_looked():
    with pytest.raises(ConfigError, match=r"KUBECONFIG is not set, .* does not exist, and this is not a pod"):
        kubeconfig.load()


def test_several_files_are_merged_and_the_first_wins(write, monkeypatch):
    first = write({"current-context": "main", "users": [{"name": "u", "user": {"token": "first"}}]}, "first")
    second = write(DOCUMENT, "second")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{first.parent / 'absent'}:{second}")
    config = kubeconfig.load()
    assert (config.token, config.server) == ("first", "https://cluster.example:6443")


def test_relative_paths_start_at_the_file(write, tmp_path):
    (tmp_path / "client.pem").write_text("CERT")
    config = kubeconfig.load(write(with_user(**{"client-certificate": "client.pem", "tokenFile": "token"})))
    assert config.client_certificate == b"CERT"
    assert config.token_file == tmp_path / "token"


def test_plugins_and_impersonation(write):
    config = kubeconfig.load(
        write(
            with_user(
                exec={
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "command": "bin/login",
                    "args": ["--cluster", "c"],
                    "env": [{"name": "A", "value": "b"}],
                },
                **{"as": "jane", "as-groups": ["dev", "ops"], "as-user-extra": {"scopes": ["x"]}},
            )
        )
    )
    assert config.plugin is not None
    assert config.plugin == ExecPlugin(
        str(config_folder := Path(config.plugin.command).parent / "login"),
        "client.authentication.k8s.io/v1beta1",
        ("--cluster", "c"),
        {"A": "b"},
    )
    assert config_folder.is_absolute()
    assert config.impersonate.user == "jane"
    assert config.impersonate.groups == ("dev", "ops")
    assert config.impersonate.extra == {"scopes": ("x",)}


def test_data_wins_over_files(write):
    data = base64.b64encode(b"inline").decode()
    config = kubeconfig.load(write(with_user(**{"client-key-data": data, "client-key": "absent"})))
    assert config.client_key == b"inline"


def test_in_a_pod_the_service_account_is_used(tmp_path, monkeypatch):
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("kserve\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    config = kubeconfig.in_cluster(tmp_path)
    assert (config.server, config.namespace) == ("https://[fd00::1]:6443", "kserve")
    assert config.token_file == tmp_path / "token"


def test_outside_a_pod_that_is_said(tmp_path):
    with pytest.raises(ConfigError, match="this is not a pod"):
        kubeconfig.in_cluster(tmp_path)
