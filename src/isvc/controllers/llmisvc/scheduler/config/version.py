"""Versions of the endpoint picker, as the annotation of its pod gives them."""

from __future__ import annotations

import re
from typing import NamedTuple

from isvc.kube.objects import Object, annotations_of

ANNOTATION = "app.kubernetes.io/version"
_FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")


class Version(NamedTuple):
    """Major, minor, patch; a pre-release counts as older than what it leads to."""

    major: int
    minor: int
    patch: int
    is_release: bool = True


def parse(text: str) -> Version:
    """Raises `ValueError` for anything but three numbers and an optional pre-release."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f'failed to parse version "{text}": {_problem(text)}')
    return Version(int(match[1]), int(match[2]), int(match[3]), match[4] is None)


def _problem(text: str) -> str:
    parts = text.partition("+")[0].partition("-")[0].split(".", 2)
    bad = next((part for part in parts if not re.fullmatch("[0-9]+", part)), None) if len(parts) == 3 else None
    return (
        f"{text} is not in dotted-tri format" if bad is None else f'strconv.ParseInt: parsing "{bad}": invalid syntax'
    )


def of_template(template: Object) -> Version:
    """Returns the version that a pod template says it runs; the oldest where it does not say."""
    return parse(annotations_of(template).get(ANNOTATION) or "0.0.0")
