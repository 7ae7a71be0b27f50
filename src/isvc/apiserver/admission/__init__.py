"""Admission: what changes or refuses a write before it is stored, plugins and webhooks."""

from __future__ import annotations

from isvc.apiserver.admission.caller import Caller
from isvc.apiserver.admission.dispatch import Admission

__all__ = ["Admission", "Caller"]
