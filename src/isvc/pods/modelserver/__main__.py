"""The model server as a program: `python -m isvc.pods.modelserver`."""

from isvc.pods.modelserver.program import main

if __name__ == "__main__":
    raise SystemExit(main())
