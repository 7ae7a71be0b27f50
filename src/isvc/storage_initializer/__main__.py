"""The storage initializer as a program: `python -m isvc.storage_initializer`."""

from __future__ import annotations

from isvc.storage_initializer.program import main

if __name__ == "__main__":
    main()
