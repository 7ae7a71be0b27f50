"""The storage initializer as a program: `python -m isvc.pods.storage_initializer`."""

from __future__ import annotations

from isvc.pods.storage_initializer.program import main

if __name__ == "__main__":
    main()
