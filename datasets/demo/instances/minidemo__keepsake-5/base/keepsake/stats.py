"""Counting what a cache does."""

from dataclasses import dataclass


@dataclass
class Stats:
    hits: int = 0
    misses: int = 0
    evicted: int = 0
    expired: int = 0

    @property
    def rate(self):
        """The share of look-ups that were hits; 0.0 before the first."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0
