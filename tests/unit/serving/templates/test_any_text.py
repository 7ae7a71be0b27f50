"""Templates come from users: whatever they are, there is text or a refusal, and nothing else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from isvc.serving.llm.functions import FUNCTIONS
from isvc.serving.llm.presets import Settings, template_values
from isvc.serving.llm.sample import sample_service
from isvc.serving.templates import TemplateError, fill
from isvc.serving.templates.functions import BUILTIN
from isvc.serving.templates.lexer import KEYWORDS

VALUES = template_values({}, sample_service(), Settings("kserve", "gw", "gwns", True, "X-Model"))
SIGNS = ["{{", "}}", "{{-", " -}}", "{{/*", "*/}}", ".", "$", "$x", ":=", "=", ",", "|", "(", ")", "`", '"', "\\", "é"]
FIELDS = [".Name", ".Spec", ".Labels", ".Spec.Model.Name", ".Spec.Template.Containers", ".Spec.Replicas", ".Nope"]
LITERALS = ["0", "-1", "1.5", "0x1F", "017", "55555", "9223372036854775807", "'a'", "`x`", '"x"', "`%s`", "`%*c`"]
WORDS = st.sampled_from([*SIGNS, *FIELDS, *LITERALS, *KEYWORDS, *BUILTIN, *FUNCTIONS])


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=12), st.sampled_from(["", " "]))
def test_any_text_is_filled_in_or_refused(words: list[str], between: str):
    for template in (between.join(words), "{{ " + between.join(words) + " }}"):
        try:
            text = fill(template, VALUES, FUNCTIONS)
        except TemplateError:
            continue
        assert text.encode().decode() == text
