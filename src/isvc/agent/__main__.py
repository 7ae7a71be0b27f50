"""The agent as a program: `python -m isvc.agent`."""

from isvc.agent.program import main

if __name__ == "__main__":
    raise SystemExit(main())
