from foldtext import fold
from foldtext.__main__ import main


def test_paragraph():
    assert fold("one two three\n", 8) == "one two\nthree\n"


def test_item():
    assert fold("- one two three", 9) == "- one two\n  three"


def test_quote():
    assert fold("> one two three", 9) == "> one two\n> three"


def test_literal_is_left_alone():
    text = "    a line that is wider than that"
    assert fold(text, 10) == text


def test_filter(tmp_path, capsys):
    source = tmp_path / "a.txt"
    source.write_text("one two three\n")
    assert main(["--width", "8", str(source)]) == 0
    assert capsys.readouterr().out == "one two\nthree\n"


def test_filter_without_room(tmp_path, capsys):
    source = tmp_path / "a.txt"
    source.write_text("- one\n")
    assert main(["--width", "2", str(source)]) == 2
    assert "leaves no room" in capsys.readouterr().err
