#!/usr/bin/env bash
# Measures the figures in docs/performance.md, and compares them with their limits.
# Needs bin/mini and the local images (make build images). PARTS="step flood"
# selects these measurements of those that need containers (see cmd/mini-bench).
# DOCKER_HOST selects the engine; its storage driver strongly affects the duration
# of a step.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
image=${IMAGE:-mini-base:latest}
failed=0

# bar NAME FIGURE LIMIT UNIT: prints a line; the limit is held if FIGURE <= LIMIT.
bar() {
	if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b) }'; then word=held; else word=missed failed=1; fi
	printf '%-58s %10s %-6s bar %-8s %s\n' "$1" "$2" "$4" "$3" "$word"
}

# median_ms COUNT COMMAND...: the median wall time of a command.
median_ms() {
	local n=$1 i start end
	shift
	for ((i = 0; i < n; i++)); do
		start=$(date +%s%N)
		"$@" >/dev/null 2>&1
		end=$(date +%s%N)
		echo $(((end - start) / 1000))
	done | sort -n | awk '{ a[NR] = $1 } END { printf "%.1f", a[int((NR + 1) / 2)] / 1000 }'
}

echo "== start of the program"
mkdir "$tmp/hello"
printf 'package main\n\nfunc main() { println("hello") }\n' >"$tmp/hello/main.go"
CGO_ENABLED=0 go build -ldflags '-s -w' -o "$tmp/hello/hello" "$tmp/hello/main.go"
hello=$(median_ms 41 "$tmp/hello/hello")
help=$(median_ms 41 bin/mini --help)
bar "mini --help above a static hello-world" "$(awk -v a="$help" -v b="$hello" 'BEGIN { printf "%.1f", a - b }')" 12 ms
bar "bin/mini" "$(stat -c %s bin/mini | awk '{ printf "%.1f", $1 / 1e6 }')" 44 MB

echo "== the live view: 64 workers, 3000 events a second, ten seconds"
view=$(go test -run '^$' -bench View -benchtime 1x ./cmd/mini/internal/ui/live | awk '{ for (i = 2; i <= NF; i++) if ($i == "%core") print $(i - 1) }')
: "${view:?the benchmark of the view has no figure}"
bar "processor time of the view, of one core" "$(printf '%.2f' "$view")" 2 %

echo "== saving a step, of 800 with 10 KB of output each, without fsync"
step=$(go test -run '^$' -bench Append/800 ./trajectories | awk '{ for (i = 2; i <= NF; i++) if ($i == "µs/step") print $(i - 1) }')
: "${step:?the benchmark of the journal has no figure}"
bar "saving a step" "$step" 150 µs

echo "== export"
go test -run '^$' -bench 'Run$' ./trajectories/export | grep MB/s

echo "== mini view: a run of 500 x 3 attempts, an attempt of 5000 steps, a comparison of 6 runs"
web=$(go test -run '^$' -bench . -benchtime 3x ./cmd/mini/internal/web)
# figure BENCHMARK UNIT: a figure of one of these benchmarks.
figure() {
	awk -v name="Benchmark$1-" -v unit="$2" 'index($1, name) == 1 { for (i = 2; i <= NF; i++) if ($i == unit) print $(i - 1) }' <<<"$web"
}
bar "page of a run" "$(figure Pages/run-warm kB)" 200 kB
bar "page of a run, after the start" "$(figure Pages/run-cold ms)" 300 ms
bar "page of a run, again" "$(figure Pages/run-warm ms)" 300 ms
bar "steps that are loaded together" "$(figure Pages/chunk kB)" 400 kB
bar "steps that are loaded together" "$(figure Pages/chunk ms)" 50 ms
bar "page of 5000 steps, whose journal has to be read" "$(figure LongAttempt/cold ms)" 500 ms
bar "page of 5000 steps, again" "$(figure LongAttempt/warm ms)" 500 ms
bar "comparison" "$(figure Compare/6x500 ms)" 1000 ms
bar "memory after 20 attempts of 5000 steps" "$(figure Memory/20-attempts MB)" 400 MB

if ! scripts/engine.sh; then
	echo "the other bars need a container engine"
	exit "$failed"
fi

# PARTS=kubernetes compares containers with pods of the cluster of KUBECONFIG.
CGO_ENABLED=0 go build -tags "${PARTS:+kubernetes}" -o "$tmp/mini-bench" ./cmd/mini-bench
"$tmp/mini-bench" -mini bin/mini -image "$image" ${PARTS:-step ask batch life flood many attempt scrub} || failed=$?

exit "$failed"
