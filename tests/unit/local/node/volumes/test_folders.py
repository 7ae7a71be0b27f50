from __future__ import annotations

import base64

import pytest

from isvc.local.node.environment import Missing
from isvc.local.node.volumes.folders import Files, contents, mounts, prepare, references


def pod(*volumes):
    return {"metadata": {"name": "p", "namespace": "ns", "labels": {"a": "b"}}, "spec": {"volumes": list(volumes)}}


FILES = Files({"cm": {"a.txt": b"A", "b.txt": b"B"}}, {"s": {"key": b"\x00\x01"}})


def test_every_kind_of_volume_becomes_a_folder(tmp_path):
    (tmp_path / "host").mkdir()
    folders = prepare(
        pod(
            {"name": "empty", "emptyDir": {}},
            {"name": "all", "configMap": {"name": "cm"}},
            {"name": "some", "configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "deep/x"}]}},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "host"), "type": "Directory"}},
            {
                "name": "both",
                "projected": {
                    "sources": [
                        {"secret": {"name": "s"}},
                        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                        {"serviceAccountToken": {"path": "token"}},
                    ]
                },
            },
            {"name": "maybe", "secret": {"secretName": "none", "optional": True}},
        ),
        FILES,
        tmp_path / "pod",
        tmp_path / "claims",
    )
    assert list(folders["empty"].iterdir()) == []
    assert (folders["all"] / "a.txt").read_text() == "A"
    assert [str(p.relative_to(folders["some"])) for p in folders["some"].rglob("*") if p.is_file()] == ["deep/x"]
    assert (folders["secret"] / "key").read_bytes() == b"\x00\x01"
    assert (folders["secret"] / "key").stat().st_mode & 0o077 == 0
    assert folders["claim"] == tmp_path / "claims" / "ns" / "data"
    assert folders["host"] == tmp_path / "host"
    assert (folders["both"] / "labels").read_text() == 'a="b"'


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "s", "items": [{"key": "no", "path": "x"}]}}, "has no key no"),
        ({"configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "../../x"}]}}, "leaves its volume"),
        ({"nfs": {"server": "x"}}, "is of kind nfs"),
        ({"hostPath": {"path": "/no/such/path", "type": "Directory"}}, "does not exist"),
    ],
)
def test_what_is_missing_is_told(volume, words, tmp_path):
    with pytest.raises(Missing, match=words):
        prepare(pod({"name": "v", **volume}), FILES, tmp_path, tmp_path)


def test_files_have_the_modes_asked_for(tmp_path):
    items = [{"key": "a.txt", "path": "a", "mode": 0o755}, {"key": "b.txt", "path": "b"}]
    source = {"configMap": {"name": "cm", "items": items}}
    folders = prepare(
        pod(
            {"name": "plain", "configMap": {"name": "cm", "defaultMode": 0o644}},
            {"name": "scripts", "configMap": {"name": "cm", "defaultMode": 0o755}},
            {"name": "mixed", "projected": {"defaultMode": 0o400, "sources": [source]}},
        ),
        FILES,
        tmp_path / "pod",
        tmp_path / "claims",
    )
    for path, mode in (("plain/a.txt", 0o600), ("scripts/b.txt", 0o700), ("mixed/a", 0o700), ("mixed/b", 0o400)):
        name, _, file = path.partition("/")
        assert (folders[name] / file).stat().st_mode & 0o777 == mode


def test_mounts_and_contents(tmp_path):
    container = {
        "volumeMounts": [
            {"name": "v", "mountPath": "/data"},
            {"name": "v", "mountPath": "/sub", "subPathExpr": "$(NAME)/x"},
        ]
    }
    assert mounts(container, {"v": tmp_path}, {"NAME": "n"}) == {"/data": str(tmp_path), "/sub": str(tmp_path / "n/x")}
    unmade = {"name": "v", "mountPath": "/m", "subPath": "none", "readOnly": True}
    with pytest.raises(Missing, match=f"there is no none in {tmp_path}"):
        mounts({"volumeMounts": [unmade]}, {"v": tmp_path}, {})
    encoded = base64.b64encode(b"v").decode()
    assert contents({"kind": "Secret", "data": {"k": encoded}}) == {"k": b"v"}
    assert contents({"kind": "ConfigMap", "data": {"k": "v"}, "binaryData": {"b": encoded}}) == {"k": b"v", "b": b"v"}


def test_names_to_look_up():
    volumes = [
        {"name": "a", "configMap": {"name": "cm"}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ]
    assert references(pod(*volumes)) == ({"cm"}, {"s"})


def test_files_are_renewed_whole_and_those_that_went_are_removed(tmp_path):
    volume = pod({"name": "v", "configMap": {"name": "cm"}})
    for files in ({"a": b"one", "b": b"1"}, {"a": b"two", "c": b"3"}):
        folder = prepare(volume, Files(config_maps={"cm": files}), tmp_path, tmp_path)["v"]
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
