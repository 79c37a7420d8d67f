from datetime import date

import pytest

from spans import Span

JANUARY = Span(date(2023, 1, 1), date(2023, 2, 1))


def test_days():
    assert JANUARY.days == 31


def test_contains_its_start_only():
    assert date(2023, 1, 1) in JANUARY
    assert date(2023, 2, 1) not in JANUARY


def test_empty_span():
    with pytest.raises(ValueError):
        Span(date(2023, 1, 1), date(2023, 1, 1))


def test_intersection():
    other = Span(date(2023, 1, 20), date(2023, 3, 1))
    assert JANUARY.intersection(other) == Span(date(2023, 1, 20), date(2023, 2, 1))


def test_spans_that_touch_do_not_overlap():
    assert JANUARY.intersection(Span(date(2023, 2, 1), date(2023, 3, 1))) is None
