"""What is said of volumes that keep what their group of nodes has changed since."""

from __future__ import annotations

from isvc.api.localmodel import LocalModelNodeGroupSpec
from isvc.controllers.localmodel.volumes import children_of, outdated_fields, serving_volume
from isvc.kube.objects import Key, Object

VOLUME = serving_volume(Key("", "iris"), "disks", "team")
DISK: Object = {"capacity": {"storage": "1Gi"}, "csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}}


def test_a_claim_follows_its_group_but_for_the_volume_that_it_names():
    group = LocalModelNodeGroupSpec(
        persistent_volume_spec=DISK,
        persistent_volume_claim_spec={"volumeName": "mine", "storageClassName": ""},
    )
    volume, claim = (child.manifest for child in children_of(VOLUME, group, None))
    assert claim["spec"]["volumeName"] == VOLUME.name
    assert [*outdated_fields(VOLUME, group, volume, claim)] == []
    edited = LocalModelNodeGroupSpec(
        persistent_volume_spec={**DISK, "csi": {"driver": "nfs.csi.k8s.io", "volumeHandle": "share"}},
        persistent_volume_claim_spec={"storageClassName": "other"},
    )
    assert [*outdated_fields(VOLUME, edited, volume, claim)] == [
        "PersistentVolume iris-disks-team keeps its csi",
        "PersistentVolumeClaim team/iris-disks keeps its storageClassName",
    ]
