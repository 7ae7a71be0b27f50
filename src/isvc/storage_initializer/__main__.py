from __future__ import annotations

from isvc.storage_initializer.program import main

if __name__ == "__main__":
    main()
