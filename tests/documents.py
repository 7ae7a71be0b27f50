"""What documents tell people to type: fenced blocks, each with the output that the block after it shows."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FENCE: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    language: str
    text: str
    output: str  # … stands for anything


def steps(page: str) -> list[Step]:
    """The blocks to run, in bash or Python, each with the output that the block after it shows."""
    blocks = FENCE.findall(page)
    following = [text if language == "text" else "" for language, text in blocks[1:]] + [""]
    return [
        Step(language, text, output)
        for (language, text), output in zip(blocks, following, strict=True)
        if language in ("bash", "python")
    ]
