"""A span of days."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, order=True)
class Span:
    """The days from start up to end; end itself is outside."""

    start: date
    end: date

    def __post_init__(self):
        if self.end <= self.start:
            raise ValueError(f"a span from {self.start} to {self.end} has no days")

    @property
    def days(self):
        return (self.end - self.start).days

    def __contains__(self, day):
        return self.start <= day < self.end

    def overlaps(self, other):
        return self.start < other.end and other.start < self.end

    def intersection(self, other):
        """Return the days of both, or None where there are none."""
        if not self.overlaps(other):
            return None
        return Span(max(self.start, other.start), min(self.end, other.end))
