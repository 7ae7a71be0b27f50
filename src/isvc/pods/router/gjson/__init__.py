"""Conditions of a graph: paths in GJSON's syntax, of which the router asks only whether something is there.

https://github.com/tidwall/gjson/blob/master/SYNTAX.md describes the syntax. Paths are followed through decoded
documents; `MISSING` is what a path leads to when nothing is there.
"""

from isvc.pods.router.gjson.documents import MISSING, NotJson, parse
from isvc.pods.router.gjson.search import exists, get

__all__ = ["MISSING", "NotJson", "exists", "get", "parse"]
