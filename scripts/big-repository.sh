#!/bin/sh
# Creates a repository of about 600 MB and 250,000 objects in a new folder, with
# 60,000 commits. 60,000 of the objects are not in the history of HEAD.
# The benchmark of the scrub in agent/worktree uses it.
set -e
[ $# -eq 1 ] && [ ! -e "$1" ] || { echo "usage: $0 NEW-FOLDER" >&2; exit 2; }
git init -q -b main "$1"
cd "$1"
python3 - <<'END' | git fast-import --quiet --depth=10
import os, sys
out = sys.stdout.buffer
for n in range(60000):
    branch = b"main" if n < 45700 else b"future"
    out.write(b"commit refs/heads/%s\ncommitter a <a@b> %d +0000\ndata 6\ncommit\n" % (branch, 1600000000 + n))
    if n == 45700:
        out.write(b"from refs/heads/main\n")
    text = b"line %d\n" % n * 40
    out.write(b"M 100644 inline pkg%d/mod%d.py\ndata %d\n%s\n" % (n % 50, n % 997, len(text), text))
    if n % 10 == 0:
        out.write(b"M 100644 inline data/%d.bin\ndata 84000\n%s\n" % (n % 1000, os.urandom(84000)))
    out.write(b"\n")
    if n % 500 == 0:
        out.write(b"reset refs/tags/v%d\nfrom refs/heads/%s\n\n" % (n, branch))
END
git checkout -q main
git remote add origin https://example.org/x
du -sk .git; git count-objects -v
