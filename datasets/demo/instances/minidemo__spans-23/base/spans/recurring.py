"""Dates that come again."""

from datetime import timedelta

from .calendar import add_months


def weekly(start, until, every=1):
    """Yield start and the same day of each week (or every so many weeks) before until."""
    _check(every)
    day = start
    while day < until:
        yield day
        day += timedelta(weeks=every)


def monthly(start, until, every=1):
    """Yield start and the same day of each month (or every so many months) before until.

    In a month that is too short its last day is taken.
    """
    _check(every)
    day = start
    while day < until:
        yield day
        day = add_months(day, every)


def _check(every):
    if every < 1:
        raise ValueError(f"every must be at least 1, not {every}")
