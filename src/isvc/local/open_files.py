"""How many files this process and those that it starts may have open.

A service takes three or four of ours. Shells allow 1,024, on macOS 256, and leave it to programs to ask for more.
"""

from __future__ import annotations

import contextlib
import resource
from typing import Final

from isvc.insight.operations import NotPossible

ENOUGH: Final = 65_536
LEAST: Final = 256


class TooFewFiles(NotPossible):
    """Nobody here may open as many files as a start takes."""


def allow_many_files() -> None:
    """Raises the limit as far as it goes, up to what is enough; raises TooFewFiles where that is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < highest:
        with contextlib.suppress(ValueError, OSError):  # a system that has a limit beside the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
    if highest < LEAST:
        raise TooFewFiles(f"only {highest} files may be open here, and {LEAST} are needed: see `ulimit -Hn`")
