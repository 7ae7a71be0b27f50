"""What pages do not show."""

from __future__ import annotations

import pytest

from isvc.dashboard.views.secrets import MASK, mask, mask_field, mask_text, presentable


def test_values_of_secrets_are_hidden_and_their_names_are_not():
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "aHVudGVyMg=="}, "stringData": {"a": "b"}}
    assert presentable(secret) == {**secret, "data": {"key": MASK}, "stringData": {"a": MASK}}


def test_bookkeeping_is_put_aside():
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    metadata = {"name": "a", "managedFields": [{}], "annotations": {applied: "{}", "mine": "kept"}}
    assert presentable({"kind": "Pod", "metadata": metadata})["metadata"] == {
        "name": "a",
        "annotations": {"mine": "kept"},
    }
    assert "annotations" not in presentable({"kind": "Pod", "metadata": {"annotations": {applied: "{}"}}})["metadata"]


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "OPENAI_API_KEY", "apikey"])
def test_variables_that_are_called_like_secrets_are_hidden(name):
    container = {"env": [{"name": name, "value": "hunter2"}, {"name": "PORT", "value": "80"}]}
    assert mask(container) == {"env": [{"name": name, "value": MASK}, {"name": "PORT", "value": "80"}]}
    field = {"path": f"containers[a].env[{name}].value", "value": "hunter2", "source": "service"}
    assert mask_field(field)["value"] == MASK


def test_a_reference_to_a_secret_is_shown():
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}
    assert mask(reference) == reference
    field = {"path": "volumes[a].secret.secretName", "value": "s", "source": "service"}
    assert mask_field(field) == field


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pass@host/model", f"https://{MASK}@host/model"),
        ("cannot fetch https://host/m?sv=1&sig=abc%3D&x=2", f"cannot fetch https://host/m?sv=1&sig={MASK}&x=2"),
        ("s3://bucket/model", "s3://bucket/model"),
        ("no address: sig=abc", "no address: sig=abc"),
    ],
)
def test_users_and_signatures_in_addresses_are_hidden(text, expected):
    assert mask_text(text) == expected
