"""`isvc`, and `python -m isvc`: Ctrl-C ends it quietly from the first moment, while it still imports itself."""

from __future__ import annotations

import signal


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from isvc.cli import main as isvc

    signal.signal(signal.SIGINT, signal.default_int_handler)
    isvc()


if __name__ == "__main__":
    main()
