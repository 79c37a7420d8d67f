#!/usr/bin/env bash
# Runs tests. Slow ones have the build tag full, those of pods also the tag kubernetes.
#
#   test.sh main [FLAGS]   all tests without a tag, without the race detector
#   test.sh full [FLAGS]   all tests once: with the race detector where the code of a
#                          package starts goroutines
#   test.sh rest [FLAGS]   what full has beyond main
set -uo pipefail
cd "$(dirname "$0")/.."

mode=$1
shift
# The tests share one helper, so that they need not build it.
export MINI_TEST_HELPER=$PWD/bin/mini-helper
mkdir -p bin && gunzip -c "env/helper/binaries/mini-helper-linux-$(go env GOARCH).gz" >"$MINI_TEST_HELPER.new" || exit 1
# An unchanged file keeps its time, because Go's cache of results depends on it.
cmp -s "$MINI_TEST_HELPER.new" "$MINI_TEST_HELPER" || mv "$MINI_TEST_HELPER.new" "$MINI_TEST_HELPER" || exit 1
rm -f "$MINI_TEST_HELPER.new"

# One package more than there are processors, because many tests wait for a container or a
# program.
run() { go test -vet=off -p $(($(getconf _NPROCESSORS_ONLN) + 1)) -timeout 60m "$@"; }

if [[ $mode == main ]]; then
	run "$@" ./...
	exit
fi

# Commands and terminals are left out of the race detector: what they share has tests of
# its own below them.
racy=() plain=()
while read -r package dir; do
	files=$(find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go')
	# shellcheck disable=SC2086 # one argument for each file
	if [[ $package != */cmd/* && $package != */env/kubernetes* && $package != *test ]] && grep -qE '^\s*(defer )?go [a-zA-Z]|\.Go\(' $files; then
		racy+=("$package")
	elif [[ $package != */env/kubernetes* ]]; then
		plain+=("$package")
	fi
done < <(go list -tags full -f '{{.ImportPath}} {{.Dir}}' ./...)

failed=0
if [[ $mode == full ]]; then
	run -tags full "$@" "${plain[@]}" || failed=1
else # of the packages without the race detector, only the tests with the tag
	names=() packages=()
	for package in "${plain[@]}"; do
		dir=./${package#*/mini/}
		tagged=$(grep -lE '^//go:build .*full' "$dir"/*_test.go 2>/dev/null) || continue
		# shellcheck disable=SC2086 # one argument for each file
		found=$(sed -nE 's/^func (Test[A-Za-z0-9_]*)\(.*testing\.T\).*/\1/p' $tagged | grep -v '^TestMain$')
		[[ -n $found ]] || continue
		mapfile -t -O "${#names[@]}" names <<<"$found"
		packages+=("$dir")
	done
	pattern=$(IFS='|'; echo "^(${names[*]})$")
	run -tags full -run "$pattern" "$@" "${packages[@]}" || failed=1
fi
CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 run -race -tags full "$@" "${racy[@]}" || failed=1
run -tags full,kubernetes "$@" ./env/kubernetes/... || failed=1
exit "$failed"
