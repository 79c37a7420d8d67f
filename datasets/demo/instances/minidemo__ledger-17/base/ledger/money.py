"""Amounts of money as whole cents."""

import re

Amount = int  # cents

_AMOUNT = re.compile(r"[+-]?\d{1,3}(?:,\d{3})*(?:\.\d{1,2})?|[+-]?\d+(?:\.\d{1,2})?")


def parse_amount(text):
    """Return the cents of a text such as "12", "-3.5" or "1,250.00".

    A comma groups thousands, a point comes before the cents. Anything else is
    a ValueError.
    """
    text = text.strip()
    if not _AMOUNT.fullmatch(text):
        raise ValueError(f"not an amount: {text!r}")
    units, _, cents = text.replace(",", "").partition(".")
    whole = int(units)
    part = int(cents.ljust(2, "0")) if cents else 0
    if whole < 0:
        part = -part
    return whole * 100 + part


def format_amount(amount):
    """Return the amount with two decimals and a minus sign where it is one."""
    sign = "-" if amount < 0 else ""
    units, cents = divmod(abs(amount), 100)
    return f"{sign}{units}.{cents:02d}"
