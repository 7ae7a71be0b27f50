"""Where in an object a position of its JSON text is: `spec.template.containers[0].image`."""

from __future__ import annotations

import re

_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]', re.DOTALL)


def path_at(text: str, position: int) -> str:
    """The path of the value that the position is in."""
    steps: list[str | int] = []
    last = ""
    for match in _SIGN.finditer(text):
        sign = match[0]
        if match.end() > position and sign[0] == '"':
            break
        if sign == "[":
            steps.append(0)
        elif sign == "{":
            steps.append("")
        elif sign in "]}" and steps:
            steps.pop()
        elif sign == "," and steps and isinstance(steps[-1], int):
            steps[-1] += 1
        elif sign == ":" and steps:
            steps[-1] = last
        last = sign[1:-1] if sign[0] == '"' else last
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" if step else "" for step in steps)
    return path.lstrip(".")


def action_at(text: str, position: int) -> tuple[int, str]:
    """Where the template action begins that the position is in, and the action, or what its string has of it."""
    start = max(text.rfind("{{", 0, position + 2), 0)
    within = re.split(r'(?<!\\)"', text[start:], maxsplit=1)[0]
    action, closing, _ = within.partition("}}")
    return start, action.replace(r"\"", '"') + closing
