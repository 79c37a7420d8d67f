from datetime import date

import pytest

from spans.calendar import add_months, days_in_month


@pytest.mark.parametrize("year, month, days", [(2023, 2, 28), (2024, 2, 29), (2023, 12, 31)])
def test_days_in_month(year, month, days):
    assert days_in_month(year, month) == days


@pytest.mark.parametrize(
    "day, count, want",
    [
        (date(2023, 1, 15), 1, date(2023, 2, 15)),
        (date(2023, 12, 1), 1, date(2024, 1, 1)),
        (date(2023, 1, 31), 1, date(2023, 2, 28)),
        (date(2023, 3, 31), -1, date(2023, 2, 28)),
        (date(2023, 1, 5), -13, date(2021, 12, 5)),
    ],
)
def test_add_months(day, count, want):
    assert add_months(day, count) == want
