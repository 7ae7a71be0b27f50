"""The objects that the parts of a program declared to read, in memory: reading never waits."""

from isvc.toolkit.cache.cache import Cache, Memory, Reader
from isvc.toolkit.store import OWNER

__all__ = ["OWNER", "Cache", "Memory", "Reader"]
