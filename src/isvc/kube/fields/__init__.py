"""Who set which field: field sets, managedFields and server-side apply.

`track` says who manages what after an ordinary write; `apply` merges what a manager applies into the live object, takes
out what it applied before and no longer does, and refuses to touch what others manage unless forced to.
"""

from __future__ import annotations

from isvc.kube.fields.fieldset import FieldSet
from isvc.kube.fields.managers import ApplyConflict, FieldConflict
from isvc.kube.fields.operations import apply, track
from isvc.kube.fields.shape import ShapeError, fields_of

__all__ = ["ApplyConflict", "FieldConflict", "FieldSet", "ShapeError", "apply", "fields_of", "track"]
