"""The router as a program: `python -m isvc.router`."""

from isvc.router.program import main

if __name__ == "__main__":
    raise SystemExit(main())
