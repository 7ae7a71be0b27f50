"""Documents are read as kubectl reads them, and a bad one is told by file and line in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from isvc.insight.rendering.documents import DocumentError, load, read

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD + "data:\n\tkey: value\n", "f.yaml:5: the line is indented with a tab, where YAML wants spaces"),
        (HEAD + "data: {a: b\n", "f.yaml:5: "),
        (HEAD + "data: {}\ndata: {}\n", "f.yaml:5: the key data is there twice"),
        (HEAD + "data: *nobody\n", "f.yaml:4: found undefined alias"),
        (HEAD + "data: !!python/object/apply:os.system [id]\n", "f.yaml:4: could not determine a constructor"),
        (HEAD + "? [a, b]\n: c\n", "f.yaml:4: a key has to be text"),
        ("metadata: {name: a}\n", "f.yaml:1: the document has no apiVersion"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "f.yaml:1: the document has no kind"),
        (HEAD + "---\nkind: Secret\napiVersion: v1\n", "f.yaml:5: Secret has no metadata"),
        ("kind: Secret\napiVersion: v1\nmetadata: {labels: {}}\n", "f.yaml:1: Secret has no metadata.name"),
        ("kind: Secret\napiVersion: v1\nmetadata: {name: ''}\n", "f.yaml:1: Secret has no metadata.name"),
        (
            HEAD.replace("name: a", "name: 3"),
            "f.yaml:1: metadata.name of ConfigMap has to be text, and this is the value 3",
        ),
        (HEAD.replace("name: a", "name: a, namespace: 3"), "f.yaml:1: metadata.namespace of ConfigMap has to be text"),
        ("- a\n- b\n", "f.yaml:1: a document has to be a map, and this is a list"),
        ("hello\n", "f.yaml:1: a document has to be a map, and this is text"),
        ("{{ template }}\n", "f.yaml:1: a key has to be text"),
        ("[" * 100_000, "f.yaml: nested deeper than 1000 levels"),
        ("a: &a\n  b: *a\n", "f.yaml:1: the document stands for more than 1000000 values"),
    ],
)
def test_a_bad_document_is_told_in_one_sentence(text: str, complaint: str) -> None:
    with pytest.raises(DocumentError) as error:
        list(read(text, "f.yaml"))
    assert str(error.value).startswith(complaint)
    assert "\n" not in str(error.value)


def test_a_bomb_of_aliases_is_refused_before_it_is_read() -> None:
    levels = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefghi", "bcdefghij", strict=True):
        levels.append(f"{name}: &{name} [{', '.join(['*' + before] * 10)}]")
    with pytest.raises(DocumentError, match="stands for more than 1000000 values"):
        list(read("\n".join(levels), "bomb.yaml"))


def test_values_are_those_of_gos_parser() -> None:
    text = HEAD + "data: {day: 2026-01-01, time: 1:30, yes: 1, 2: two, flag: on, number: 1.5}\n"
    (document,) = read(text)
    assert document.obj["data"] == {
        "day": "2026-01-01",
        "time": "1:30",
        "yes": 1,
        "2": "two",
        "flag": True,
        "number": 1.5,
    }


def test_lists_and_empty_documents_are_taken_apart() -> None:
    text = (
        "---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n"
        + HEAD
    )
    assert [str(each) for each in read(text, "f")] == ["f:3: Secret a", "f:8: ConfigMap a"]


def test_anchors_and_merge_keys_are_written_out() -> None:
    (document,) = read(HEAD + "one: &one {a: 1, b: 2}\ntwo: {<<: *one, b: 3}\n")
    assert document.obj["two"] == {"a": 1, "b": 3}


def test_json_with_tabs_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(
        b'\xef\xbb\xbf{\n\t"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}\n}'
    )
    assert [document.obj["kind"] for document in load(tmp_path)] == ["Secret"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"nowhere\.yaml: no such file or directory"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(DocumentError, match="the folder has no file that ends in"):
        load(tmp_path)
    (tmp_path / "b.yaml").write_bytes(HEAD.encode() + b"data: \xff\n")
    with pytest.raises(DocumentError, match=r"b\.yaml:4: the file is not UTF-8"):
        load(tmp_path / "b.yaml")


@pytest.mark.parametrize("text", ["", "# nothing yet", "---\n---\n"])
def test_files_without_a_document_are_an_error_as_they_are_for_kubectl(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError, match="there is no document in it"):
        load(path)
