"""Hides secrets in what people read: events, conditions, logs, diagnoses, differences, tables and pages.

People give models addresses with a user, a password or a signature in them, and messages quote addresses. Whatever
shows a text or an object to people passes it through here; what is stored and applied stays as it is.
"""

from __future__ import annotations

import re
from typing import Any, Final

from isvc.kube.objects import Object

MASK: Final = "(hidden)"
_SECRET_NAME: Final = re.compile(
    r"secret|token|passw|credential|signature|private|api_?key|_key$|access_?key|authorization", re.IGNORECASE
)
_USER: Final = re.compile(r"(?<=://)[^/?#\s'\"<>]+@")
# The look ahead finds out once whether there is a parameter at all: with a text that never becomes one, every way to
# read a name would be tried otherwise, and strangers choose the texts.
_PARAMETER: Final = re.compile(
    r"(?<=[?&;])(?=[\w.-]+=[^&;\s'\"<>])((?:sig|key|auth|pwd|x-(?:amz|goog|ms)-[\w-]+|[\w.-]*(?:signature|token|passw|secret|credential|key|auth)[\w.-]*)=)"
    r"[^&;\s'\"<>]+",
    re.IGNORECASE,
)

# Sequences that move cursors, set titles or fill clipboards, finished or not; whatever else is not tab or newline; and
# what turns the direction of text that has one of its own.
_CONTROL: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]P_^X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


def mask_text(text: str) -> str:
    """Hides users, passwords and signatures of the addresses in a text."""
    if "://" in text:
        text = _USER.sub(f"{MASK}@", text)
    return _PARAMETER.sub(rf"\1{MASK}", text) if "=" in text else text


def drop_controls(text: str) -> str:
    """Drops what would command a terminal that shows a text of somebody else's."""
    return _CONTROL.sub("", text)


def plain_text(text: str) -> str:
    """Hides secrets in a text of somebody else's, and drops what would command a terminal that shows it."""
    return mask_text(drop_controls(text))


def mask(value: Any) -> Any:
    """Hides the secrets in a value: variables named for one, users and signatures in addresses."""
    match value:
        case {"name": str(name), "value": str()} if _SECRET_NAME.search(name):
            return {**value, "value": MASK}
        case dict():
            return {name: mask(each) for name, each in value.items()}
        case list():
            return [mask(each) for each in value]
        case str():
            return mask_text(value)
        case _:
            return value


def mask_field(field: dict[str, Any]) -> dict[str, Any]:
    """Masks a field of an effective spec: `containers[model].env[API_TOKEN].value`."""
    path = str(field["path"])
    is_secret = path.endswith(".value") and _SECRET_NAME.search(path)
    return {**field, "value": MASK if is_secret else mask(field["value"])}


def mask_conditions(status: Object) -> Object:
    """Returns a status whose conditions quote no secrets."""
    conditions = status.get("conditions") or ()
    shown = [{**each, "message": mask_text(each["message"])} if each.get("message") else each for each in conditions]
    return {**status, "conditions": shown} if shown != conditions else status
