"""Arithmetic with months."""

import calendar
from datetime import date


def days_in_month(year, month):
    return calendar.monthrange(year, month)[1]


def add_months(day, count):
    """Return the same day so many months later (earlier, if negative).

    Where that month is too short, its last day: one month after January 31st
    is the end of February.
    """
    months = day.year * 12 + day.month - 1 + count
    year, month = divmod(months, 12)
    month += 1
    return date(year, month, min(day.day, days_in_month(year, month)))
