"""Many spans at once."""

from .span import Span


def merge(spans):
    """Return the fewest spans with the same days, in order.

    Spans that touch become one.
    """
    merged = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            last = merged.pop()
            span = Span(last.start, max(last.end, span.end))
        merged.append(span)
    return merged


def gaps(spans):
    """Return the spans of days between spans."""
    merged = merge(spans)
    return [Span(a.end, b.start) for a, b in zip(merged, merged[1:])]


def total_days(spans):
    """Count the days, each of them once."""
    return sum(span.days for span in merge(spans))
