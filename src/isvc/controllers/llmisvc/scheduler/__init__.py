"""The scheduler that picks a pod for each request: its Deployment, Service, permissions, pools and tokenizer."""

from isvc.controllers.llmisvc.scheduler.plan import hold, plan
from isvc.controllers.llmisvc.scheduler.report import report

__all__ = ["hold", "plan", "report"]
