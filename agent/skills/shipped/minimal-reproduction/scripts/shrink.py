#!/usr/bin/env python3
"""Leaves out of a file what a command does not need to go on succeeding.

    shrink.py [--chars] [--timeout S] [--runs N] [-o OUT] FILE -- COMMAND [ARGS...]

COMMAND ends with 0 while the file still shows what is looked for. "@" in it is
replaced by the file that is tried; without one that is the last argument. Lines
are left out, with --chars characters, too. What is left goes to FILE.min.
Exit: 0 done, 1 the whole file does not show it, 2 bad usage.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time


def main():
    args = sys.argv[1:]
    if "--" not in args:
        sys.exit(usage())
    at = args.index("--")
    command = args[at + 1:]
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--chars", action="store_true")
    p.add_argument("--timeout", type=float, default=30)
    p.add_argument("--runs", type=int, default=2000)
    p.add_argument("-o", "--output")
    p.add_argument("file")
    try:
        o = p.parse_args(args[:at])
    except SystemExit:
        sys.exit(usage())
    if not command:
        sys.exit(usage())
    try:
        with open(o.file, "rb") as f:
            data = f.read()
    except OSError as e:
        print("shrink: %s" % e, file=sys.stderr)
        sys.exit(2)
    t = Trial(command, o)
    try:
        if not t.holds(data):
            print("shrink: the command does not succeed with the whole file", file=sys.stderr)
            sys.exit(1)
        small = b"".join(least(data.splitlines(keepends=True), t))
        if o.chars:
            small = b"".join(least([small[i:i + 1] for i in range(len(small))], t))
    finally:
        t.close()
    out = o.output or o.file + ".min"
    with open(out, "wb") as f:
        f.write(small)
    more = "" if t.runs < o.runs else "; stopped after --runs, it may become smaller yet"
    print("%d bytes, %d lines -> %d bytes, %d lines in %s (%d runs%s)" % (
        len(data), len(data.splitlines()), len(small), len(small.splitlines()), out, t.runs, more))


def usage():
    print(__doc__.strip(), file=sys.stderr)
    return 2


class Trial:
    """The command, and what it said of contents that were tried."""

    def __init__(self, command, options):
        self.command, self.options = command, options
        self.runs, self.known = 0, {}
        self.dir = tempfile.mkdtemp(prefix="shrink-")
        self.path = os.path.join(self.dir, os.path.basename(options.file))  # the ending may matter
        self.start = time.time()

    def holds(self, data):
        if data in self.known:
            return self.known[data]
        if self.runs >= self.options.runs:
            return False
        self.runs += 1
        with open(self.path, "wb") as f:
            f.write(data)
        argv = [self.path if a == "@" else a for a in self.command]
        if "@" not in self.command:
            argv.append(self.path)
        try:
            r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=self.options.timeout)
            ok = r.returncode == 0
        except subprocess.TimeoutExpired:
            ok = False
        except OSError as e:
            print("shrink: %s" % e, file=sys.stderr)
            sys.exit(2)
        if len(self.known) < 5000:
            self.known[data] = ok
        return ok

    def close(self):
        try:
            if os.path.exists(self.path):
                os.remove(self.path)
            os.rmdir(self.dir)
        except OSError:
            pass  # the command left something there


def least(parts, trial):
    """Delta debugging: leave out ever smaller pieces until none can go."""
    pieces = 2
    while len(parts) > 1:
        size = max(1, len(parts) // pieces)
        done, i = False, 0
        while i < len(parts):
            rest = parts[:i] + parts[i + size:]
            if rest and trial.holds(b"".join(rest)):
                parts, done = rest, True
            else:
                i += size
        if size == 1 and not done:
            break
        pieces = max(2, min(len(parts), pieces if done else pieces * 2))
    return parts


if __name__ == "__main__":
    main()
