"""A cache in memory, bounded by size and by age."""

from .cache import Cache
from .decorator import memoize
from .stats import Stats

__all__ = ["Cache", "Stats", "memoize"]
