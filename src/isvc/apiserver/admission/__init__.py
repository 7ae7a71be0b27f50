"""Admission: the webhooks that users register to change or refuse what is written."""

from __future__ import annotations

from isvc.apiserver.admission.caller import Caller
from isvc.apiserver.admission.dispatch import Admission

__all__ = ["Admission", "Caller"]
