"""How many examples a property is tried with: few in `make test`, more in `make test-thorough`, many in `make fuzz`.

In CI they are always the same, in `make fuzz` never.
"""

from __future__ import annotations

import os

from hypothesis import settings

FUZZ_EXAMPLES = "ISVC_FUZZ_EXAMPLES"
FUZZ_SEED = "ISVC_FUZZ_SEED"


def seeds(count: int) -> list[int]:
    """For tests with dice of their own: the same seeds at every run, others with each run of `make fuzz`."""
    first = int(os.environ.get(FUZZ_SEED, "0"))
    return list(range(first, first + count))


def examples(usual: int = 30) -> int:
    return max(usual, int(os.environ.get(FUZZ_EXAMPLES, "0")))


def budget(usual: int) -> settings:
    """A test's own number of examples."""
    return settings(max_examples=examples(usual))
