from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.api import DecodeError
from isvc.kube import gojson as go
from isvc.serving.llm.functions import FUNCTIONS
from isvc.serving.llm.gojson import write
from isvc.serving.llm.gotypes import go_type
from isvc.serving.llm.template import Template
from isvc.serving.templates import TemplateError, fill
from isvc.serving.templates.values import typed_value

CONFIG = go_type("llm.LLMInferenceServiceConfig")
PIECES = ("{{ .Name }}", "{{ if .Name }}x{{ end }}", "{{ if .Name }}", "{{ end }}", 'said "so"', "a\\b", "text", "")


def config(*args: str, image: str = "vllm") -> dict[str, object]:
    main = {"name": "main", "image": image, "args": list(args), "resources": {"limits": {"cpu": "0.5"}}}
    return {"spec": {"model": {"uri": "hf://a/b"}, "template": {"containers": [main]}}}


def filled_in(template: Template, name: str) -> str:
    return fill(template.text, typed_value({"Name": name}), FUNCTIONS)


def as_go_writes(filled: str) -> str:
    return go.dumps(write(orjson.loads(filled), CONFIG))


@given(st.lists(st.lists(st.sampled_from(PIECES)).map("".join), max_size=4), st.text('ab"\\,[]', max_size=8))
def test_what_keeps_its_form_is_what_go_would_write(args, name):
    template = Template.of(config(*args), CONFIG)
    try:
        filled = filled_in(template, name)
        as_written = as_go_writes(filled)
    except (TemplateError, DecodeError, orjson.JSONDecodeError):
        return  # refused either way
    if template.keeps_its_form(filled):
        assert go.dumps(orjson.loads(filled)) == as_written


def test_a_template_in_a_text_keeps_its_form():
    template = Template.of(config("--name={{ .Name }}", "{{ if .Name }}--short{{ end }}"), CONFIG)
    assert template.keeps_its_form(filled_in(template, "llama"))


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        (config(image="{{ .Name }}"), ""),  # Go leaves an empty image out
        (config("{{ if .Name }}", "--more", "{{ end }}"), ""),
        (config("{{ .Name }}"), 'a","b'),
        (config("{{ .Name }}", ",{{ .Name }}"), "\\\\"),
    ],
)
def test_another_form_is_noticed(odd, name):
    template = Template.of(odd, CONFIG)
    assert not template.keeps_its_form(filled_in(template, name))
