"""Whole texts."""

from .blocks import split_blocks
from .lines import fill_lines


def fold(text, width=72):
    """Return the text with every block folded to the width.

    Lines that are indented by four spaces or a tab are left as they are.
    """
    lines = []
    for block in split_blocks(text):
        if block.kind in ("literal", "blank"):
            lines.append(block.text)
        else:
            lines += fill_lines(block.text, width, block.first, block.rest) or [block.first.rstrip()]
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")
