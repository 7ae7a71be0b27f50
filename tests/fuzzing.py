"""How many examples a property is tried with: few and always the same in CI, random and many in `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import settings

FUZZ_EXAMPLES = "ISVC_FUZZ_EXAMPLES"
FUZZ_SEED = "ISVC_FUZZ_SEED"


def seeds(count: int) -> list[int]:
    """For tests with dice of their own: the same seeds at every run, others with each run of `make fuzz`."""
    first = int(os.environ.get(FUZZ_SEED, "0"))
    return list(range(first, first + count))


def budget(examples: int) -> settings:
    """A test's own number of examples, which `make fuzz` raises."""
    return settings(max_examples=max(examples, int(os.environ.get(FUZZ_EXAMPLES, "0"))))
