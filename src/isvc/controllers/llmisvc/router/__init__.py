"""The way in: HTTPRoute, gateways, addresses, routing groups."""

from isvc.controllers.llmisvc.router.plan import plan
from isvc.controllers.llmisvc.router.report import report

__all__ = ["plan", "report"]
