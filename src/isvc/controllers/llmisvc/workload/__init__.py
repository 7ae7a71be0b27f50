"""The model servers: pods, storage, certificates, permissions, scaling."""

from isvc.controllers.llmisvc.workload.plan import plan
from isvc.controllers.llmisvc.workload.report import report

__all__ = ["plan", "report"]
