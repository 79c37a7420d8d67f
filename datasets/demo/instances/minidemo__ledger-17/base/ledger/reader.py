"""Reading the CSV file."""

import csv
import datetime
from dataclasses import dataclass

from .money import parse_amount

FIELDS = ("date", "account", "description", "amount")


class LedgerError(Exception):
    """A line of the file that cannot be understood."""

    def __init__(self, line, reason):
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Entry:
    date: datetime.date
    account: str
    description: str
    amount: int


def read_entries(lines):
    """Yield the entries of an iterable of lines, the header first.

    Blank lines are skipped; spaces around a field do not count.
    """
    rows = csv.reader(lines)
    header = None
    for row in rows:
        row = [field.strip() for field in row]
        if not any(row):
            continue
        if header is None:
            header = _header(row, rows.line_num)
            continue
        yield _entry(dict(zip(header, row)), rows.line_num)


def _header(row, line):
    names = [name.lower() for name in row]
    missing = [name for name in FIELDS if name not in names]
    if missing:
        raise LedgerError(line, "no column " + ", ".join(missing))
    return names


def _entry(row, line):
    if any(row.get(name) is None for name in FIELDS):
        raise LedgerError(line, "too few fields")
    try:
        date = datetime.date.fromisoformat(row["date"])
        amount = parse_amount(row["amount"])
    except ValueError as error:
        raise LedgerError(line, str(error)) from error
    return Entry(date, row["account"], row["description"], amount)
