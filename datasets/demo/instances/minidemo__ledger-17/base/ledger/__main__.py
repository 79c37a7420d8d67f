"""The command line: python3 -m ledger COMMAND FILE."""

import argparse
import sys

from .money import format_amount
from .reader import LedgerError, read_entries
from .report import balances, months


def _table(sums):
    rows = [(name, format_amount(amount)) for name, amount in sums.items()]
    rows.append(("total", format_amount(sum(sums.values()))))
    left = max(len(name) for name, _ in rows)
    right = max(len(amount) for _, amount in rows)
    return "\n".join(f"{name:<{left}}  {amount:>{right}}" for name, amount in rows)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="ledger")
    parser.add_argument("command", choices=["balance", "months"])
    parser.add_argument("file")
    options = parser.parse_args(argv)
    with open(options.file, encoding="utf-8", newline="") as lines:
        try:
            entries = list(read_entries(lines))
        except LedgerError as error:
            print(f"{options.file}: {error}", file=sys.stderr)
            return 1
    print(_table(balances(entries) if options.command == "balance" else months(entries)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
