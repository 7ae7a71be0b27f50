"""What would exist for given documents, and what would change: the planner as a library, with no cluster."""

import logging

from isvc.insight.rendering.documents import Document, DocumentError, load
from isvc.insight.rendering.problems import Problem
from isvc.insight.rendering.renderer import Rendering, render

__all__ = ["Document", "DocumentError", "Problem", "Rendering", "load", "render"]

logging.getLogger("isvc").addHandler(logging.NullHandler())  # what controllers log is for programs that set up logging
