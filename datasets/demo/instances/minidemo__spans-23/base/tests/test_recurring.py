from datetime import date

import pytest

from spans import monthly, weekly


def test_weekly():
    days = list(weekly(date(2023, 1, 2), date(2023, 1, 24)))
    assert days == [date(2023, 1, 2), date(2023, 1, 9), date(2023, 1, 16), date(2023, 1, 23)]


def test_every_second_week():
    assert len(list(weekly(date(2023, 1, 2), date(2023, 1, 24), every=2))) == 2


def test_monthly():
    days = list(monthly(date(2023, 11, 5), date(2024, 2, 5)))
    assert days == [date(2023, 11, 5), date(2023, 12, 5), date(2024, 1, 5)]


def test_monthly_into_a_short_month():
    days = list(monthly(date(2023, 1, 31), date(2023, 3, 1)))
    assert days == [date(2023, 1, 31), date(2023, 2, 28)]


@pytest.mark.parametrize("recur", [weekly, monthly])
def test_every_must_be_positive(recur):
    with pytest.raises(ValueError):
        list(recur(date(2023, 1, 1), date(2024, 1, 1), every=0))
