"""Times that people may wait, as options: seconds as a number, or a duration as kubectl takes it (`90s`, `5m`)."""

from __future__ import annotations

import math

import click

from isvc.kube import durations


class Seconds(click.ParamType[float]):
    name = "DURATION"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            parsed: float | None = float(value)
        except ValueError:
            parsed = durations.seconds(str(value))
        if parsed is None or math.isnan(parsed):
            self.fail(f"{value!r} is neither a number of seconds nor a duration such as 90s or 5m", param, ctx)
        return parsed
