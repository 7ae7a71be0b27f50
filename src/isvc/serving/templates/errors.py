"""What goes wrong with templates."""

from __future__ import annotations


class TemplateError(Exception):
    """The template cannot be parsed, or asks for something that its values do not have; `at` is where it says so."""

    def __init__(self, problem: str, at: int | None = None) -> None:
        super().__init__(problem)
        self.at = at
