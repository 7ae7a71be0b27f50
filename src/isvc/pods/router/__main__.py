"""The router as a program: `python -m isvc.pods.router`."""

from isvc.pods.router.program import main

if __name__ == "__main__":
    raise SystemExit(main())
