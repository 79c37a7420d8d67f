#!/usr/bin/env bash
# Runs all tests: with the race detector if a package or its tests start
# goroutines, otherwise without it. More packages than processors run in parallel,
# because many wait for containers. The stories of the command line run without the
# detector: they start mini hundreds of times, and what they reach has tests of its
# own. The tests of pods run without it, too, because client-go takes minutes to compile
# for it. `make test-long` runs both with it. The tests of pods start many containers, so
# they run at the end: those of env/docker measure times of the engine.
set -uo pipefail
cd "$(dirname "$0")/.."

racy=() plain=() pods=()
while read -r package dir; do
	if [[ $package == */cmd/mini/internal/cli ]]; then
		plain=("$package" "${plain[@]}") # it takes longest, so it begins
	elif [[ $package == */env/kubernetes* ]]; then
		pods+=("$package")
	elif grep -qE '^\s*(defer )?go [a-zA-Z]|\.Go\(|synctest\.' "$dir"/*.go; then
		racy+=("$package")
	else
		plain+=("$package")
	fi
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ./...)

failed=0
CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -p 3 -race -vet=off -timeout 60m "${racy[@]}" || failed=1
go test -p 3 -parallel 4 -vet=off -timeout 60m "${plain[@]}" || failed=1
go test -vet=off -timeout 60m "${pods[@]}" || failed=1
exit "$failed"
