import pytest

from foldtext import fill_lines


def test_short_text_is_one_line():
    assert fill_lines("a few words", 20) == ["a few words"]


def test_breaks_between_words():
    assert fill_lines("one two three four", 9) == ["one two", "three", "four"]


def test_exact_fit():
    assert fill_lines("one two three", 7) == ["one two", "three"]


def test_spaces_are_collapsed():
    assert fill_lines("  one \n two ", 10) == ["one two"]


def test_nothing():
    assert fill_lines("   ", 10) == []


def test_prefixes_of_the_same_length():
    assert fill_lines("one two three", 9, "* ", "  ") == ["* one two", "  three"]


def test_long_word_is_cut():
    assert fill_lines("abcdefghij", 4) == ["abcd", "efgh", "ij"]


@pytest.mark.parametrize("first, rest", [("> > > ", ""), ("", "      ")], ids=["first", "rest"])
def test_no_room(first, rest):
    with pytest.raises(ValueError):
        fill_lines("x", 6, first, rest)
