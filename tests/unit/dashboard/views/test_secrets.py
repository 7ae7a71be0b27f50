"""What pages do not show."""

from __future__ import annotations

from isvc.dashboard.views.secrets import presentable
from isvc.kube.masking import MASK


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
