from datetime import date

from spans import Span, gaps, merge, total_days


def span(start, end):
    return Span(date(2023, 1, start), date(2023, 1, end))


def test_merge():
    assert merge([span(10, 12), span(1, 5), span(4, 8)]) == [span(1, 8), span(10, 12)]


def test_merge_keeps_the_longer():
    assert merge([span(1, 20), span(2, 3)]) == [span(1, 20)]


def test_merge_spans_that_touch():
    assert merge([span(1, 2), span(2, 3)]) == [span(1, 3)]


def test_gaps():
    assert gaps([span(1, 3), span(5, 6), span(9, 10)]) == [span(3, 5), span(6, 9)]


def test_total_days():
    assert total_days([span(1, 5), span(3, 7)]) == 6
