"""The LLM server as a program: `python -m isvc.pods.llmserver`."""

from isvc.pods.llmserver.program import main

if __name__ == "__main__":
    raise SystemExit(main())
