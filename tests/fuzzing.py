"""How many examples a property is tried with: few and always the same in CI, random and many in `make fuzz`."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import settings

FUZZ_EXAMPLES = "ISVC_FUZZ_EXAMPLES"


def budget(examples: int) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """A test's own number of examples, which `make fuzz` raises."""
    return settings(max_examples=max(examples, int(os.environ.get(FUZZ_EXAMPLES, "0"))))
