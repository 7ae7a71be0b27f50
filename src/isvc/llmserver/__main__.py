"""The LLM server as a program: `python -m isvc.llmserver`."""

from isvc.llmserver.program import main

if __name__ == "__main__":
    raise SystemExit(main())
