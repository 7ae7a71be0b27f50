"""Objects as pages show them: without what nobody should read over a shoulder, and without what nobody wants to read.

Values of Secrets and of variables that are called like secrets are masked; managedFields and the copy of the manifest
that `kubectl apply` leaves behind are put aside.
"""

from __future__ import annotations

import re
from typing import Any, Final

from isvc.kube.objects import LAST_APPLIED, Object, annotations_of

MASK: Final = "(hidden)"
_SECRET_NAME: Final = re.compile(
    r"secret|token|passw|credential|signature|private|api_?key|_key$|access_?key|authorization", re.IGNORECASE
)
_USER: Final = re.compile(r"(?<=://)[^/@\s]+@")
_SIGNATURE: Final = re.compile(r"\b(sig|signature|token|x-amz-[a-z-]+|password)=[^&\s]+", re.IGNORECASE)


def presentable(obj: Object) -> Object:
    """Returns the object, fit for a page."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    if annotations := {name: text for name, text in annotations_of(obj).items() if name != LAST_APPLIED}:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    rest = {name: mask(value) for name, value in obj.items() if name != "metadata"}
    if obj.get("kind") == "Secret":
        rest |= {field: dict.fromkeys(obj[field], MASK) for field in ("data", "stringData") if obj.get(field)}
    order = ("apiVersion", "kind", "metadata")
    both = {**rest, "metadata": mask(metadata)}
    return {name: both[name] for name in (*order, *(name for name in rest if name not in order)) if name in both}


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


def mask_text(text: str) -> str:
    if "://" not in text:
        return text
    return _SIGNATURE.sub(rf"\1={MASK}", _USER.sub(f"{MASK}@", text))
