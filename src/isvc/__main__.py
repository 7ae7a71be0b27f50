"""`isvc`, and `python -m isvc`: Ctrl-C ends it quietly from the first moment, while it still imports itself."""

from __future__ import annotations

import signal
import sys
from io import TextIOWrapper


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, TextIOWrapper):  # there is none where it is closed
            output.reconfigure(errors="backslashreplace")  # what a locale without Unicode cannot say
    from isvc.cli import main as isvc

    signal.signal(signal.SIGINT, signal.default_int_handler)
    isvc()


if __name__ == "__main__":
    main()
