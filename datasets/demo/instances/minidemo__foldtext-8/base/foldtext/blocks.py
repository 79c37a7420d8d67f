"""Text into blocks: paragraphs, list items, quotes, and lines left as they are."""

import re
from dataclasses import dataclass

_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|\d+[.)])(?P<gap> +)(?=\S)")
_QUOTE = re.compile(r"(?P<mark>(?:> ?)+)")


@dataclass(frozen=True)
class Block:
    """A stretch of text that is folded by itself.

    first and rest are what its first and its other lines begin with; kind is
    "text", "item", "quote", "literal" or "blank".
    """

    kind: str
    text: str
    first: str = ""
    rest: str = ""


def _start(line):
    if not line.strip():
        return Block("blank", "")
    if line.startswith(("    ", "\t")):
        return Block("literal", line.rstrip())
    if found := _ITEM.match(line):
        mark = found.group()
        return Block("item", line[found.end() :].strip(), mark, " " * len(mark))
    if found := _QUOTE.match(line):
        mark = found["mark"].rstrip() + " "
        return Block("quote", line[found.end() :].strip(), mark, mark)
    return Block("text", line.strip())


def _continues(block, line, start):
    """Tell whether a line that starts such a block belongs to the one before."""
    if block.kind == "quote":
        return start.kind == "quote" and start.first == block.first
    if block.kind == "text":
        return start.kind == "text"
    if block.kind == "item":
        return start.kind == "text" and line.startswith(" ")
    return False


def split_blocks(text):
    """Return the blocks of a text, in order."""
    blocks = []
    for line in text.splitlines():
        start = _start(line)
        if blocks and _continues(blocks[-1], line, start):
            last = blocks.pop()
            start = Block(last.kind, f"{last.text} {start.text}".strip(), last.first, last.rest)
        blocks.append(start)
    return blocks
