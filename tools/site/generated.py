"""What pages take from the code, by the name in their `<!-- generated: NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tools.site.kinds import kinds
from tools.site.metrics import alerts, llmserver_metrics, manager_metrics, modelserver_metrics, router_metrics
from tools.site.programs import commands, programs
from tools.site.runtimes import runtimes

ROOT: Final = Path(__file__).parents[2]


def decisions() -> str:
    """A list of all decisions, the latest first."""
    titles = {
        path.name: path.read_text().splitlines()[0].removeprefix("# ")
        for path in sorted((ROOT / "docs" / "decisions").glob("2*.md"), reverse=True)
    }
    return "\n".join(f"- [{title}]({name})" for name, title in titles.items())


GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "alerts": alerts,
    "commands": commands,
    "decisions": decisions,
    "kinds": kinds,
    "llmserver_metrics": llmserver_metrics,
    "manager_metrics": manager_metrics,
    "modelserver_metrics": modelserver_metrics,
    "router_metrics": router_metrics,
    "programs": programs,
    "runtimes": runtimes,
}


def filled_in(markdown: str) -> str:
    return re.sub(r"<!-- generated: (\w+) -->", lambda mark: GENERATED[mark[1]](), markdown)
