from foldtext import Block, split_blocks


def test_paragraphs():
    kinds = [block.kind for block in split_blocks("one\ntwo\n\nthree")]
    assert kinds == ["text", "blank", "text"]


def test_item_takes_its_continuation():
    assert split_blocks("- one\n  two\n- three") == [
        Block("item", "one two", "- ", "  "),
        Block("item", "three", "- ", "  "),
    ]


def test_numbers():
    assert split_blocks("10. ten")[0].rest == "    "


def test_quotes_by_depth():
    blocks = split_blocks("> > deep\n> shallow\n> more")
    assert [(block.first, block.text) for block in blocks] == [("> > ", "deep"), ("> ", "shallow more")]


def test_literal():
    assert split_blocks("    code  here")[0] == Block("literal", "    code  here")
