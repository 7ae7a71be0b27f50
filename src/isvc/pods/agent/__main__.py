"""The agent as a program: `python -m isvc.pods.agent`."""

from isvc.pods.agent.program import main

if __name__ == "__main__":
    raise SystemExit(main())
