"""What people are not shown."""

from __future__ import annotations

import pytest
from tests.growth import assert_grows_as_its_input

from isvc.kube.masking import MASK, mask, mask_conditions, mask_field, mask_text, plain_text


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
        ("https://user:p@ss@host/model", f"https://{MASK}@host/model"),
        ("('https://u:p@host/m?X-Amz-Signature=ab&x=1')", f"('https://{MASK}@host/m?X-Amz-Signature={MASK}&x=1')"),
        ("GET /model.bin?access_token=abc", f"GET /model.bin?access_token={MASK}"),
        ("s3://bucket/model", "s3://bucket/model"),
        ("see https://host/docs, or mail me@host", "see https://host/docs, or mail me@host"),
        ("no address: sig=abc", "no address: sig=abc"),
    ],
)
def test_users_and_signatures_in_addresses_are_hidden(text, expected):
    assert mask_text(text) == expected


@pytest.mark.parametrize("end", ["", "=", "=&", "!", "=a"])
def test_nobody_can_keep_us_busy(end):
    """A condition quotes what a service says, which may be a megabyte."""
    assert_grows_as_its_input(lambda number: mask_text("=&" + "key" * number + end), 2_000)


def test_a_status_quotes_no_secret_and_is_otherwise_the_same():
    quiet = {"url": "http://a", "conditions": [{"type": "Ready", "status": "True"}]}
    assert mask_conditions(quiet) is quiet
    loud = {"conditions": [{"type": "Ready", "message": "cannot read https://me:hunter2@host/m"}]}
    assert mask_conditions(loud) == {"conditions": [{"type": "Ready", "message": f"cannot read https://{MASK}@host/m"}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m\ttab\nline", "red\ttab\nline"),
        ("\x1b]0;title\x07a\x1b]52;c;Y2xpcA==\x1b\\b", "ab"),
        ("\x9b2Ja\x9d0;t\x9cb\x1bc\x1b(Bc\x1b[", "abc"),
        ("back\b\b\rover\x7f", "backover"),
        ("model\u202egnp.exe\u2066", "modelgnp.exe"),
        ("Grüße, 世界, שלום", "Grüße, 世界, שלום"),
    ],
)
def test_a_terminal_is_not_commanded_by_a_log(text, expected):
    assert plain_text(text) == expected
