from ledger import balances, months, read_entries
from ledger.__main__ import main

BOOK = """\
date,account,description,amount
2023-01-02,cash,Opening balance,250.00
2023-01-05,food,Groceries,-42.10
2023-02-01,food,Market,-8.00
"""


def entries():
    return read_entries(BOOK.splitlines())


def test_balances():
    assert balances(entries()) == {"cash": 25000, "food": -5010}


def test_months():
    assert months(entries()) == {"2023-01": 20790, "2023-02": -800}


def test_command(tmp_path, capsys):
    book = tmp_path / "book.csv"
    book.write_text(BOOK)
    assert main(["balance", str(book)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["total", "199.90"]


def test_command_names_the_line(tmp_path, capsys):
    book = tmp_path / "book.csv"
    book.write_text(BOOK + "2023-02-30,food,Market,-1\n")
    assert main(["months", str(book)]) == 1
    assert "line 5" in capsys.readouterr().err
