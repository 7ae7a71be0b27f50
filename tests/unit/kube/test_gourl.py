"""Addresses as Go prints them; the expectations were printed by Go's net/url."""

from __future__ import annotations

import pytest

from isvc.kube.gourl import normalize


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("hf://Qwen/Qwen2.5-7B:main", "hf://Qwen/Qwen2.5-7B:main"),
        ("HF://a/b c", "hf://a/b%20c"),
        ("hf://", "hf:"),
        ("hf:///x", "hf:///x"),
        ("file:/x", "file:/x"),
        ("mailto:a b", "mailto:a b"),
        ("oci://registry:5000/m@sha256:1", "oci://registry:5000/m@sha256:1"),
        ("oci://[::1]:5000/m", "oci://[::1]:5000/m"),
        ("{{ .Nope }}", "%7B%7B%20.Nope%20%7D%7D"),
        ("s3://b/%2Fa{", "s3://b//a%7B"),
        ("s3://b/%2Fa", "s3://b/%2Fa"),
        ("https://e.com/m?a=b c&d#", "https://e.com/m?a=b c&d"),
        ("hf://é/é", "hf://%C3%A9/%C3%A9"),
        ("a/b:c", "a/b:c"),
    ],
)
def test_what_parses(text: str, printed: str):
    assert normalize(text) == printed


@pytest.mark.parametrize(
    "text", ["100%", "://x", ":x", "a b:c/", "oci://r:50x/a", "hf://{{ .Name }}/x", "hf://%zz", "a\nb", "hf://a^@b"]
)
def test_what_does_not(text: str):
    with pytest.raises(ValueError, match="has"):
        normalize(text)
