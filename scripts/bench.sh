#!/usr/bin/env bash
# Measures the figures in docs/performance.md, and compares them with their bars.
# Needs bin/mini and the local images (make build images). PARTS="step output"
# selects these parts. DOCKER_HOST selects the engine; its storage driver strongly
# affects the duration of a step.
set -euo pipefail
cd "$(dirname "$0")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# parts: the packages and benchmarks of each, and the options of go test.
declare -A parts=(
	[view]='./cmd/mini/internal/ui/live ^BenchmarkView$'
	[journal]='./trajectories ^BenchmarkAppend$/^800_steps$ -benchtime=1s'
	[grade]='./runner/grade/savedlogs ^BenchmarkGrade$ -benchtime=1s'
	[export]='./trajectories/export ^BenchmarkRun$ -benchtime=1s'
	[web]='./cmd/mini/internal/web . -benchtime=3x'
	[step]='./cmd/mini ^BenchmarkStep$'
	[batch]='./cmd/mini ^BenchmarkBatch$'
	[output]='./cmd/mini ^BenchmarkOutput$'
	[serve]='./cmd/mini ^BenchmarkServe$'
	[verify]='./cmd/mini ^BenchmarkVerify$'
	[ask]='./env/docker ^BenchmarkToolCall$'
	[life]='./env/docker ^BenchmarkLifecycle$'
	[many]='./env/docker ^BenchmarkMany$'
	[attempt]='./agent/worktree ^BenchmarkAttempt$'
	[scrub]='./agent/worktree ^BenchmarkScrub$'
	[kubernetes]='./env/kubernetes ^BenchmarkLive$ -tags=kubernetes,kubernetes_live'
)

# bars: the part, the benchmark, the unit of the figure, the bar and what is measured.
bars='
program    start                      ms                <=12    mini --help above a static hello-world
program    size                       MB                <=44    bin/mini
view       View                       %core             <=2     processor time of the live view
journal    Append/800_steps           µs/step           <=150   saving a step, of 800 with 10 KB of output
grade      Grade                      MB/s              >=80    mini grade, saved logs
export     Run/openai                 MB/s              >=50    mini export, openai
export     Run/sharegpt               MB/s              >=50    mini export, sharegpt
web        Pages/run-warm             kB                <=200   page of a run of 500 x 3 attempts
web        Pages/run-cold             ms                <=300   page of a run, after the start
web        Pages/run-warm             ms                <=300   page of a run, again
web        Pages/chunk                kB                <=400   steps that are loaded together
web        Pages/chunk                ms                <=50    steps that are loaded together
web        LongAttempt/cold           ms                <=500   page of 5000 steps, whose journal has to be read
web        LongAttempt/warm           ms                <=500   page of 5000 steps, again
web        Compare/6x500              ms                <=1000  comparison of 6 runs
web        Memory/20-attempts         MB                <=400   memory after 20 attempts of 5000 steps
step       Step/bash-c                step/shell        <=1.35  bash -c: a step / the shell alone
step       Step/bash-c                docker-exec/step  >=25    bash -c: docker exec / a step
step       Step/bash-lc               step/shell        <=1.35  bash -lc: a step / the shell alone
step       Step/bash-lc               docker-exec/step  >=12    bash -lc: docker exec / a step
batch      Batch/16-workers           %ideal            >=92    16 workers: rate of steps
batch      Batch/16-workers           ms-CPU/step       <=0.6   16 workers: CPU time of mini for each step
batch      Batch/64-workers           MB                <=56    64 workers: peak memory of mini
output     Output                     s-more            <=0.5   200 MB of output, above head alone
output     Output                     MB                <=28    200 MB of output: peak memory of mini
serve      Serve                      MB                <=160   mini serve, 500 rollouts at once: peak memory
serve      Serve                      ms-health-p99     <=50    mini serve, 500 rollouts at once: 99 % of /health
serve      Serve                      ms-health         <=50    mini serve, 500 rollouts at once: slowest /health
verify     Verify                     %eval             >=95    mini serve, /verify: rate / that of mini eval
ask        ToolCall/bash-c            ms-tools-allowed  <=0.25  bash -c: tools that are not called
ask        ToolCall/bash-c            ms-tool-call      <=3     bash -c: a call of mini-tool
ask        ToolCall/bash-lc           ms-tools-allowed  <=0.25  bash -lc: tools that are not called
ask        ToolCall/bash-lc           ms-tool-call      <=3     bash -lc: a call of mini-tool
life       Lifecycle                  ms-removal        <=100   removal of a container
attempt    Attempt                    processes-before  <=30    processes and threads before the first call
attempt    Attempt                    ms-before         <=500   their time
attempt    Attempt                    processes-after   <=30    processes and threads after the submission
attempt    Attempt                    ms-after          <=500   their time
scrub      Scrub/given                s-first           <=8     scrub, first attempt on an image
scrub      Scrub/given                s-later           <=1     scrub, each later attempt
scrub      Scrub/clean                s-first           <=8     scrub of a clean image, first attempt
scrub      Scrub/clean                s-later           <=0.5   scrub of a clean image, each later attempt
kubernetes Live/pod                   ms-first-result   <=1300  pod: create to first result
kubernetes Live/pod                   ms-slowest-first-result <=5000 pod: create to first result, at most
kubernetes Live/pod-without-network   ms-first-result   <=1300  pod without a network, with its proof
kubernetes Live/pod                   MB/s-put          >=40    pod: Put of 1 GB
kubernetes Live/pod                   MB/s-get          >=40    pod: Get of 1 GB
'

# measure PART: prints the figures of a part.
measure() {
	if [ "$1" = program ]; then
		mkdir "$tmp/hello"
		printf 'package main\n\nfunc main() { println("hello") }\n' >"$tmp/hello/main.go"
		CGO_ENABLED=0 go build -ldflags '-s -w' -o "$tmp/hello/hello" "$tmp/hello/main.go"
		awk -v a="$(median_ms bin/mini --help)" -v b="$(median_ms "$tmp/hello/hello")" 'BEGIN { printf "Benchmarkstart 1 %.1f ms\n", a - b }'
		stat -c %s bin/mini | awk '{ printf "Benchmarksize 1 %.1f MB\n", $1 / 1e6 }'
		return
	fi
	read -r package benchmark options <<<"${parts[$1]:?there is no such part}"
	MINI_REQUIRE_DOCKER=1 go test "$package" -run '^$' -bench "$benchmark" -benchtime 1x -timeout 1h $options
}

# median_ms COMMAND...: the median wall time of a command.
median_ms() {
	local i start
	for i in {1..41}; do
		start=${EPOCHREALTIME/./}
		"$@" >/dev/null 2>&1
		echo $((${EPOCHREALTIME/./} - start))
	done | sort -n | awk 'NR == 21 { printf "%.1f", $1 / 1000 }'
}

all='program view journal grade export web'
if scripts/engine.sh; then all+=' step ask batch life output many attempt scrub serve verify'; fi
for part in ${PARTS:-$all}; do
	echo "== $part"
	measure "$part" >"$tmp/$part" || { cat "$tmp/$part"; failed=1; continue; }
	grep ^Benchmark "$tmp/$part" || true # some need data that not every machine has
	while read -r of benchmark unit bar what; do
		[ "$of" = "$part" ] || continue
		figure=$(awk -v name="Benchmark$benchmark" -v unit="$unit" '{ sub(/-[0-9]+$/, "", $1) } $1 == name { for (i = 2; i <= NF; i++) if ($i == unit) print $(i - 1) }' "$tmp/$part")
		if [ -z "$figure" ]; then
			word='not measured'
		elif awk "BEGIN { exit !($figure $bar) }"; then
			word=held
		else
			word=missed failed=1
		fi
		printf '%-55s %10s %-24s bar %-8s %s\n' "$what" "$figure" "$unit" "$bar" "$word"
	done <<<"$bars"
done
exit "$failed"
