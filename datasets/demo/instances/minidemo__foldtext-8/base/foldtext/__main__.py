"""The filter: python3 -m foldtext [--width N] [FILE]."""

import argparse
import sys

from .fold import fold


def main(argv=None):
    parser = argparse.ArgumentParser(prog="foldtext")
    parser.add_argument("file", nargs="?", help="standard input without it")
    parser.add_argument("--width", type=int, default=72)
    options = parser.parse_args(argv)
    if options.file:
        with open(options.file, encoding="utf-8") as source:
            text = source.read()
    else:
        text = sys.stdin.read()
    try:
        sys.stdout.write(fold(text, options.width))
    except ValueError as error:
        print(f"foldtext: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
