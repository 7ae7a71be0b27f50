from __future__ import annotations

import pytest

from isvc.local.node.pods.lacking import missing_here

LABELS = {"kubernetes.io/os": "linux"}
CAPACITY = {"cpu": "2", "memory": "8Gi", "pods": "110"}


def pod(*resources, **spec):
    return {"spec": {"containers": [{"resources": each} for each in resources], **spec}}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod({"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "64"}}), []),
        (pod(nodeSelector={"kubernetes.io/os": "linux"}), []),
        (pod(nodeSelector={"gpu": "a100"}), ["this machine is no node with the label gpu=a100"]),
        (pod({"limits": {"nvidia.com/gpu": 1}}), ["this machine has no nvidia.com/gpu"]),
        (pod({"limits": {"nvidia.com/gpu": "0"}}), []),
        (pod({"requests": {"cpu": "1500m"}}, {"requests": {"cpu": 1}}), ["cpu 2, and the pod asks for 2500m"]),
        (pod({"requests": {"memory": "64Gi", "ephemeral-storage": "9Ti"}}), ["memory 8Gi, and the pod asks for 64Gi"]),
        (pod({"requests": {"cpu": "nonsense"}}), []),
        (pod(), []),
    ],
)
def test_what_this_machine_lacks(asked, expected):
    found = list(missing_here(asked, LABELS, CAPACITY))
    assert len(found) == len(expected)
    assert all(said.endswith(clause) for said, clause in zip(found, expected, strict=True))
