"""The model server as a program: `python -m isvc.modelserver`."""

from isvc.modelserver.program import main

if __name__ == "__main__":
    raise SystemExit(main())
