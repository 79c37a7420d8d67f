#!/usr/bin/env bash
# Measures what README.md states, and says of each bar whether it is held.
# Needs bin/mini and the local images (make build images).
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
image=${IMAGE:-mini-base:latest}
failed=0

# bar NAME FIGURE LIMIT UNIT: held when FIGURE <= LIMIT.
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
bar "mini --help above a static hello-world" "$(awk -v a="$help" -v b="$hello" 'BEGIN { printf "%.1f", a - b }')" 15 ms

echo "== the live view: 64 workers, 3000 events a second, ten seconds"
view=$(go test -run '^$' -bench View -benchtime 1x ./cmd/mini/internal/tui | awk '{ for (i = 2; i <= NF; i++) if ($i == "%core") print $(i - 1) }')
: "${view:?the benchmark of the view has no figure}"
bar "processor time of the view, of one core" "$(printf '%.2f' "$view")" 2 %

if ! scripts/engine.sh; then
	echo "the other bars need a container engine"
	exit "$failed"
fi

echo "== commands in a container ($image)"
go test -run '^$' -bench . -benchtime 300x ./env/docker | grep -E 'Benchmark' || true

echo "== 200 MB of output"
printf '{"instance_id":"flood","problem_statement":"p","image":"%s"}\n' "$image" >"$tmp/rows.jsonl"
cat >"$tmp/replies.yaml" <<'Y'
- |
  ```bash
  head -c 200000000 /dev/zero | tr '\0' x
  ```
- |
  ```bash
  echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT
  ```
Y
/usr/bin/env python3 - "$tmp" <<'P' >"$tmp/rss"
import resource, subprocess, sys
tmp = sys.argv[1]
subprocess.run(["bin/mini", "bench", "--progress", "none", "--subset", tmp + "/rows.jsonl", "--model-class", "scripted",
                "-c", "model.replies=" + tmp + "/replies.yaml", "-o", tmp + "/run"],
               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1))
P
bar "peak resident memory of mini" "$(cat "$tmp/rss")" 64 MB

exit "$failed"
