#!/usr/bin/env bash
# Runs each fuzz target for the given time (default 10s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

grep -rlE '^func Fuzz' --include='*_test.go' . | while IFS= read -r file; do
	grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | sed 's/^func //' | while IFS= read -r target; do
		echo "== $target ($(dirname "$file"))"
		# The rounds of this one are long and begin anew, whatever the coverage.
		limit=$time && [[ $target != FuzzEdits ]] || limit=10000x
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$limit" "$(dirname "$file")"
	done
done
