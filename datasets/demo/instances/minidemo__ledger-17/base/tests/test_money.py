import pytest

from ledger import format_amount, parse_amount


@pytest.mark.parametrize(
    "text, cents",
    [
        ("0", 0),
        ("12", 1200),
        ("12.3", 1230),
        ("12.34", 1234),
        ("+1.00", 100),
        ("-3.50", -350),
        ("1,250.00", 125000),
        ("-1,000,000.01", -100000001),
    ],
)
def test_parse(text, cents):
    assert parse_amount(text) == cents


def test_parse_ignores_spaces_around():
    assert parse_amount(" 7.05 ") == 705


@pytest.mark.parametrize("text", ["", "abc", "1.234", "1,00", "--1", "1e3", ".5"])
def test_parse_refuses(text):
    with pytest.raises(ValueError):
        parse_amount(text)


@pytest.mark.parametrize("cents, text", [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (123456, "1234.56")])
def test_format(cents, text):
    assert format_amount(cents) == text
