from isvc.kube.owners import controller_of, controller_ref, is_controlled_by

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "boss", "uid": "1"}}


def test_a_child_knows_its_controller():
    child = {"metadata": {"ownerReferences": [{"uid": "2", "kind": "Other"}, controller_ref(OWNER)]}}
    controller = controller_of(child)
    assert controller is not None
    assert controller["name"] == "boss"
    assert is_controlled_by(child, "1")
    assert not is_controlled_by(child, "2")


def test_nobody_controls_an_orphan():
    assert controller_of({"metadata": {}}) is None
    assert not is_controlled_by({"metadata": {"ownerReferences": [{"controller": True}]}}, "")
