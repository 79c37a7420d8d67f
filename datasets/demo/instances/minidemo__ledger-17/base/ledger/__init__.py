"""A ledger in a CSV file: reading, balances, reports."""

from .money import Amount, format_amount, parse_amount
from .reader import Entry, LedgerError, read_entries
from .report import balances, months

__all__ = [
    "Amount",
    "Entry",
    "LedgerError",
    "balances",
    "format_amount",
    "months",
    "parse_amount",
    "read_entries",
]
