"""Kubernetes' dialect of CEL: the expressions in validation rules and match conditions."""

from __future__ import annotations

from isvc.apiserver.cel.program import CelError, Program, compile_expression, compile_in, environment, mentions_old

__all__ = ["CelError", "Program", "compile_expression", "compile_in", "environment", "mentions_old"]
