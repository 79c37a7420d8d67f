import datetime

import pytest

from ledger import Entry, LedgerError, read_entries

HEADER = "date,account,description,amount"


def test_reads_entries():
    lines = [HEADER, "", "2023-01-05, food ,Groceries,-42.10"]
    assert list(read_entries(lines)) == [Entry(datetime.date(2023, 1, 5), "food", "Groceries", -4210)]


def test_columns_in_any_order():
    lines = ["Amount,Date,Description,Account", "1.00,2023-02-01,Gift,cash"]
    assert next(read_entries(lines)).account == "cash"


def test_quoted_comma():
    lines = [HEADER, '2023-01-05,rent,"Flat, January","-1,100.00"']
    entry = next(read_entries(lines))
    assert (entry.description, entry.amount) == ("Flat, January", -110000)


@pytest.mark.parametrize(
    "line, reason",
    [
        ("2023-13-01,a,b,1", "line 2"),
        ("2023-01-01,a,b,x", "not an amount"),
        ("2023-01-01,a,b", "too few fields"),
    ],
    ids=["date", "amount", "fields"],
)
def test_bad_line(line, reason):
    with pytest.raises(LedgerError, match=reason):
        list(read_entries([HEADER, line]))


def test_missing_column():
    with pytest.raises(LedgerError, match="no column amount"):
        list(read_entries(["date,account,description"]))
