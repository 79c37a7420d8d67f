"""Sums over entries."""

from collections import defaultdict


def balances(entries):
    """Return {account: sum of its amounts}, accounts in order of appearance."""
    sums = defaultdict(int)
    for entry in entries:
        sums[entry.account] += entry.amount
    return dict(sums)


def months(entries):
    """Return {"YYYY-MM": sum}, the earliest month first."""
    sums = defaultdict(int)
    for entry in entries:
        sums[f"{entry.date:%Y-%m}"] += entry.amount
    return dict(sorted(sums.items()))
