"""Spans of days, and dates that recur."""

from .algebra import gaps, merge, total_days
from .recurring import monthly, weekly
from .span import Span

__all__ = ["Span", "gaps", "merge", "monthly", "total_days", "weekly"]
