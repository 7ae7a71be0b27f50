"""KServe's SDK is used on the `isvc up` that the suites of tests/up share."""

from tests.up.conftest import here, laptop

__all__ = ["here", "laptop"]
