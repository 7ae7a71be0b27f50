from __future__ import annotations

import os

import pytest

from isvc.local.node.containers.translate import Translation
from isvc.local.node.programs.images import ImageTable, ImageTableError, Program, parse


def program_of(table: ImageTable, image: str) -> Program:
    program = table.find(image)
    assert program is not None
    return program


@pytest.mark.parametrize(
    "image",
    [
        "kserve/sklearnserver",
        "kserve/sklearnserver:latest",
        "docker.io/kserve/sklearnserver:v0.17.0",
        "registry.test:5000/kserve/sklearnserver@sha256:abc",
    ],
)
def test_images_are_known_by_name_whatever_their_registry_and_tag(image, tmp_path):
    program = program_of(ImageTable(tmp_path / "none"), image)
    assert "--framework=sklearn" in program.command


@pytest.mark.parametrize(
    "image",
    [
        "vllm/vllm-openai:v0.22.0",
        "x.test/vllm/vllm-openai-cpu",
        "ghcr.io/llm-d/llm-d-cuda:v1",
        "kserve/huggingfaceserver:v1-gpu",
    ],
)
def test_images_of_vllm_are_the_llm_server(image, tmp_path):
    program = program_of(ImageTable(tmp_path / "none"), image)
    assert "isvc.pods.llmserver" in program.command
    assert program.stands_for == "vllm"


def test_the_server_of_hugging_face_listens_where_kserves_does(tmp_path):
    program = program_of(ImageTable(tmp_path / "none"), "kserve/huggingfaceserver:v1")
    assert Translation({8080: 4711}).words(program.command)[-1] == "--port=4711"


def test_unknown_images(tmp_path):
    table = ImageTable(tmp_path / "none")
    assert table.find("tensorflow/serving:latest") is None
    assert table.find("my-kserve/sklearnserver2") is None


def test_users_extend_and_override_the_table(tmp_path):
    path = tmp_path / "images.yaml"
    table = ImageTable(path)
    assert table.find("mine") is None
    path.write_text(
        "images:\n  mine: {command: [a]}\n  team/*: {command: [b], env: {X: 1}, workingDir: /w}\n"
        "  kserve/sklearnserver: {command: [c]}\n"
    )
    assert program_of(table, "x.test/mine:2").command == ("a",)
    program = program_of(table, "team/thing:1")
    assert (program.command, program.env, program.working_dir) == (("b",), {"X": "1"}, "/w")
    assert program_of(table, "kserve/sklearnserver:latest").command == ("c",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images: [1]", "expected a map `images`"),
        ("images: {a: {comand: []}}", "images.a: unknown field comand"),
        ("images: {a: {command: x}}", "images.a.command: expected a list"),
        ("images: {a: b}", "images.a: expected a map"),
        ("{", "f: "),
    ],
)
def test_mistakes_in_the_table_are_told(text, words):
    with pytest.raises(ImageTableError, match=words):
        parse(text, "f")


def test_a_file_that_was_seen_half_written_is_read_again(tmp_path):
    path = tmp_path / "images.yaml"
    table = ImageTable(path)
    path.write_text("")
    moment = path.stat().st_mtime_ns
    assert table.find("example.com/mine:1") is None
    path.write_text("images: {mine: {command: [echo]}}")
    os.utime(path, ns=(moment, moment))
    program = table.find("example.com/mine:1")
    assert program is not None
    assert program.command == ("echo",)


def test_our_servers_say_where_they_are_asked_whether_they_are_ready(tmp_path):
    made = tmp_path / "runtimes" / "own" / "images.yaml"
    made.parent.mkdir(parents=True)
    made.write_text(
        "images: {own/sklearn: {python: /venv/bin/python, command: [python, -m, isvc.pods.modelserver]},"
        " own/other: {command: [python, serve.py]}}"
    )
    table = ImageTable(tmp_path / "images.yaml")
    health = {image: table.get(image).health for image in ("own/sklearn", "own/other", "vllm/vllm-openai")}
    assert health == {"own/sklearn": "/v2/health/ready", "own/other": "", "vllm/vllm-openai": "/health"}
