"""Reports the scheduler in the status of a service."""

from __future__ import annotations

from isvc.controllers.llmisvc.planned import Applied, Area
from isvc.controllers.llmisvc.status.edit import StatusEdit


def report(edit: StatusEdit, area: Area, applied: Applied) -> None:
    """Conditions and fields that follow from what is there now."""
