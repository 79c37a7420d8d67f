"""Words into lines."""


def _pieces(word, room):
    """Cut a word that is wider than a line; most words come back whole."""
    while len(word) > room:
        yield word[:room]
        word = word[room:]
    if word:
        yield word


def fill_lines(text, width, first="", rest=""):
    """Return the lines of a text, none wider than width.

    first stands before the first line, rest before all others; both count
    towards the width. A word that does not fit on a line is cut.
    """
    room = width - len(first)
    if room < 1 or width - len(rest) < 1:
        raise ValueError(f"width {width} leaves no room for text")
    lines = []
    line = ""
    for word in text.split():
        for piece in _pieces(word, room):
            if line and len(line) + 1 + len(piece) > room:
                lines.append(line)
                line = piece
            else:
                line = f"{line} {piece}" if line else piece
    if line:
        lines.append(line)
    return [(rest if n else first) + line for n, line in enumerate(lines)]
