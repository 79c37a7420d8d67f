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
processors=$(getconf _NPROCESSORS_ONLN)
run() { go test -vet=off -timeout 60m "$@"; }

if [[ $mode == main ]]; then
	run -p $((processors + 1)) "$@" ./...
	exit
fi

# Commands and terminals are left out of the race detector: what they share has tests of
# its own below them. The packages with slow tests come first, so that none of them runs
# alone at the end.
racy=() plain=() slow_racy=() slow_plain=()
while read -r package dir; do
	files=$(find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go')
	# shellcheck disable=SC2086 # one argument for each file
	if [[ $package != */cmd/* && $package != */env/kubernetes* && $package != *test ]] && grep -qE '^\s*(defer )?go [a-zA-Z]|\.Go\(' $files; then
		kind=racy
	elif [[ $package != */env/kubernetes* ]]; then
		kind=plain
	else
		continue
	fi
	grep -qE '^//go:build .*full' "$dir"/*_test.go 2>/dev/null && kind=slow_$kind
	declare -n list=$kind
	list+=("$package")
done < <(go list -tags full -f '{{.ImportPath}} {{.Dir}}' ./...)

failed=0
if [[ $mode == full ]]; then
	run -p $((processors + 1)) -tags full "$@" "${slow_plain[@]}" "${plain[@]}" || failed=1
else # of the packages without the race detector, only the tests with the tag
	names=() packages=()
	for package in "${slow_plain[@]}"; do
		dir=./${package#*/mini/}
		tagged=$(grep -lE '^//go:build .*full' "$dir"/*_test.go)
		# shellcheck disable=SC2086 # one argument for each file
		found=$(sed -nE 's/^func (Test[A-Za-z0-9_]*)\(.*testing\.T\).*/\1/p' $tagged | grep -v '^TestMain$')
		[[ -n $found ]] || continue
		mapfile -t -O "${#names[@]}" names <<<"$found"
		packages+=("$dir")
	done
	pattern=$(IFS='|'; echo "^(${names[*]})$")
	run -p $((processors + 1)) -tags full -run "$pattern" "$@" "${packages[@]}" || failed=1
fi
CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 run -p $((processors + 1)) -race -tags full "$@" "${slow_racy[@]}" "${racy[@]}" || failed=1
run -p $((processors + 1)) -tags full,kubernetes "$@" ./env/kubernetes/... || failed=1
exit "$failed"
