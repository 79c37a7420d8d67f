#!/usr/bin/env bash
# Makes runs and sessions of every kind with a given mini, for TestGoldenRuns
# (cmd/mini/internal/cli/golden_runs_test.go). The archive of that test was made by the
# binary of commit 03b6009b, so that the test shows what mini reads from older files.
#
#   golden-runs.sh MINI FOLDER [ARCHIVE]
#       makes the runs in FOLDER, which must not exist, and packs them into ARCHIVE
#   golden-runs.sh --open OLD NEW FOLDER
#       makes some of them with NEW, and compares what OLD and NEW say about them
#
# It needs Linux, git, python3, script(1), a container engine with the images of make
# images, and root, for a file system that becomes full. All paths are absolute.
set -euo pipefail
trap 'jobs -p | xargs -r kill 2>/dev/null' EXIT
shopt -s extglob
source_dir=$(cd "$(dirname "$0")/.." && pwd)

# prepare makes FOLDER the working directory, and an environment without the user's settings.
prepare() {
  mkdir "$2"
  cd "$2"
  mkdir home in runs sessions tmp repo
  install -D "$1" tmp/bin/mini # runs record the name with which mini was started
  go -C "$source_dir" build -o "$PWD/tmp/bin/fake-model" ./model/fake/serve
  for name in $(compgen -e); do
    case $name in PATH | PWD | DOCKER_HOST) ;; *) unset "$name" ;; esac
  done
  export HOME=$PWD/home TMPDIR=$PWD/tmp TZ=UTC TERM=dumb NO_COLOR=1 GIT_CONFIG_GLOBAL=/dev/null
  export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@example.org GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@example.org
  export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' PATH=$PWD/tmp/bin:$PATH XDG_RUNTIME_DIR=$PWD/tmp
  git -C repo init -q -b main
  echo 'A project.' >repo/README
  git -C repo add -A
  git -C repo commit -q -m first
  local id
  for id in a b c; do
    printf '{"instance_id":"org__%s-1","repo":"org/%s","problem_statement":"Mend %s."}\n' $id $id $id
  done >in/rows.jsonl
  make_inputs
}

submit='echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'
# pause waits for the signal of stopped at the first time, and returns at once later.
pause() { echo "test -e $PWD/tmp/go || { touch $PWD/tmp/go; sleep 300; }"; }

# replies writes in/NAME.yaml: a list of replies with one command each.
replies() {
  local name=$1 n=0 command
  shift
  for command; do
    n=$((n + 1))
    printf -- '- content: Step %d.\n  tool_calls:\n    - |\n      %s\n  cost: 0.1\n  usage: {prompt_tokens: %d, completion_tokens: 20}\n' \
      $n "${command//$'\n'/$'\n'      }" $((500 + 100 * n))
  done >"in/$name.yaml"
}

make_inputs() {
  replies four 'echo two >> file' 'cat file; date +%s%N' 'echo three >> file' "$submit; git diff"
  replies fails 'false' 'no-such-program' 'exit 7' "printf '\\377\\000 \\033[31mred\\033[0m\\n'" 'seq 1 20000' 'sleep 5' \
    'sleep 50 & sleep 0.1; echo started' "$submit; printf 'patch \\377\\n'"
  replies paused 'echo two >> file' "$(pause)" 'echo three >> file' "$submit; git diff"
  replies paused-at-once "$(pause)" "$submit; git diff"
  replies outside 'echo two >> file' "test -e $PWD/tmp/outside" "$submit; git diff"
  replies counts 'seq 1 2000' 'seq 1 2001; false' 'seq 1 2002' 'seq 1 2003' 'seq 1 2004' 'seq 1 2005' "$submit; git diff"
  replies malformed 'echo two >> file' "$submit; echo no patch" "$submit; git diff"
  echo '[{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]' >in/extra.json
  cat >in/summaries.yaml <<'E'
- {content: "The numbers were looked at.", cost: 0.25}
- {content: "The numbers were looked at again.", cost: 0.25}
- {content: "The numbers were looked at thrice.", cost: 0.25}
E
  cat >in/short.yaml <<'E'
agent: {compaction: summarize, compaction_tokens: 6000, compaction_keep: 2}
model: {summary: {replies: in/summaries.yaml}}
E
  cat >in/down.yaml <<'E'
model: {summary: {model_class: openai, model_name: none, base_url: "http://127.0.0.1:1/v1", max_tries: 1, price: {free: true}}}
E
  cat >in/tail.yaml <<'E'
agent:
  tail_template: |
    {{range .errors}}Mind: {{.command}} ended with {{.returncode}} ({{.line}})
    {{end}}
E
  cat >in/errors.yaml <<'E'
org__a-1: [what, should, I, do]
org__b-1:
  - no command
  - {content: "Two calls.", tool_calls: [echo one, echo two]}
  - {reasoning_content: "What was it?", content: "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"}
"*":
  - "```bash\ntrue\n```"
E
  cat >in/calls.yaml <<'E'
- {tool_calls: [{name: bash, arguments: '{"command":"echo first > made"}'}, {name: bash, arguments: '{"command":"echo second >> made"}'}]}
- {tool_calls: [{name: python, arguments: '{"code":"print(1)"}'}, {name: bash, arguments: '{"command":'}]}
- {content: "I hand it in.", tool_calls: [{name: bash, arguments: '{"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat made"}'}]}
E
  local png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==
  printf '{"instance_id":"org__i-1","problem_statement":"Look.","image_assets":{"problem_statement":["data:image/png;base64,%s","https://h.example/b.png"]}}\n' $png >in/images.jsonl
  cat >in/route.yaml <<'E'
model: {route: {kind: interleave, models: [{model_name: one, price: {input: 1, output: 2}}, {model_name: two, price: {input: 3, output: 4}}]}}
E
  replies images "echo $png | base64 -d > a.png; printf 'IMG: a.png\\nIMG: none.png\\n'" "$submit; echo patch"
}

# bench makes runs/NAME with local sandboxes and the replies of in/REPLIES.yaml, or those of
# the dataset if REPLIES is empty. Any exit code is good, since many runs are to fail.
bench() {
  local name=$1 script=$2
  shift 2
  echo "$name" >&2
  mini bench --environment-class local --empty-folder -o "runs/$name" --progress none \
    ${script:+--model-class scripted --replies "in/$script.yaml"} "$@" >>"tmp/$name.out" 2>&1 || echo "exit code $?" >>"tmp/$name.out"
  if ! compgen -G "runs/$name/run.json" >/dev/null && ! compgen -G "runs/$name/*/run.json" >/dev/null; then
    echo "golden-runs: $name made no run:" >&2
    cat "tmp/$name.out" >&2
    return 1
  fi
}

# work is bench for attempts at a small repository.
work() { bench "$1" "$2" --subset in/rows.jsonl -c "run.env_startup_command=$start" "${@:3}"; }
start='git init -q . && git config user.name n && git config user.email n@example.org && echo one > file && git add -A && git commit -qm first'

# stopped is work that gets a signal during the command of pause.
stopped() {
  local signal=$1
  shift
  rm -f tmp/go
  work "$@" &
  local job=$!
  until [[ -e tmp/go ]]; do sleep 0.05; done
  kill "-$signal" "$(cat "runs/$1/.lock")"
  wait $job
}

simple_runs() {
  work text four -w 3
  work xml four -c agent.protocol=xml
  work tools four -c agent.protocol=tools -c run.traj_response=true
  bench demo '' --subset demo -i minidemo__keepsake-5 -i minidemo__foldtext-8
  work repeated four -i org__a-1 -k 2
  work repeated four -i org__a-1 -i org__b-1 -k 3 -w 2
  work redone four -i org__a-1
  work redone fails -i org__a-1 --redo-existing
  bench no-repository four --subset in/rows.jsonl
  bench setup-failed four --subset in/rows.jsonl -i org__a-1 -c run.env_startup_command=false -c run.max_tries=2
  bench fails fails --subset in/rows.jsonl -i org__a-1 -c environment.timeout=1
  work no-patch fails -i org__a-1
  work malformed malformed -i org__a-1
  work limited four -c agent.step_limit=2
  work limited-no-patch four -i org__a-1 -c agent.step_limit=2 --no-autosubmit
  work costly four -i org__a-1 -l 0.15
  bench errors errors --subset in/rows.jsonl
  work sweep '' -i org__a-1 --vary model.replies=in/four.yaml,in/fails.yaml --vary agent.step_limit=1,9 --model-class scripted
}

stopped_runs() {
  stopped KILL killed-at-once paused-at-once
  stopped KILL killed paused -i org__a-1
  stopped KILL killed-torn paused -i org__a-1
  printf '{"id":9,"parent' >>runs/killed-torn/org__a-1/attempts/1/journal.jsonl
  stopped KILL killed-resumed paused -i org__a-1
  printf '{"id":9,"parent' >>runs/killed-resumed/org__a-1/attempts/1/journal.jsonl
  work killed-resumed paused -i org__a-1 --resume-attempts
  stopped KILL killed-again paused -i org__a-1
  work killed-again paused -i org__a-1
  stopped INT interrupted paused
  controlled
  work budget four -i org__a-1 --total-calls 2
  work budget-resumed four -i org__a-1 --total-calls 1
  work budget-resumed four -i org__a-1 --total-calls 3 --resume-attempts
  work budget-resumed four -i org__a-1 --total-calls 9 --resume-attempts
  rm -f tmp/outside
  work diverged outside -i org__a-1 --total-calls 2
  work diverged-forced outside -i org__a-1 --total-calls 2
  touch tmp/outside
  work diverged outside -i org__a-1 --total-calls 9 --resume-attempts
  work diverged-forced outside -i org__a-1 --total-calls 9 --resume-attempts --force
}

# controlled makes a run in which an attempt is ended and queued again.
controlled() {
  rm -f tmp/go
  work controlled paused &
  until [[ -e tmp/go ]]; do sleep 0.05; done
  mini ctl runs/controlled kill org__a-1 >>tmp/controlled.out
  until grep -qs attempt_finished runs/controlled/events.jsonl; do sleep 0.05; done
  mini ctl runs/controlled requeue org__a-1 >>tmp/controlled.out || true
  wait $!
}

compacted_runs() {
  work elided counts -i org__a-1 -c in/short.yaml -c agent.compaction=elide
  work summarized counts -i org__a-1 -c in/short.yaml
  work summary-failed counts -i org__a-1 -c in/short.yaml -c in/down.yaml
  work tail counts -i org__a-1 -c in/tail.yaml
  work compacted-stopped counts -i org__a-1 -c in/short.yaml --total-calls 5
  work compacted-resumed counts -i org__a-1 -c in/short.yaml --total-calls 5
  work compacted-resumed counts -i org__a-1 -c in/short.yaml --total-calls 19 --resume-attempts
}

image_runs() {
  bench images-seen images --subset in/images.jsonl -c agent.images.marker=IMG: -c model.images=yes
  bench images-unseen images --subset in/images.jsonl -c agent.images.marker=IMG:
  bench calls calls --subset in/rows.jsonl -i org__a-1 -c agent.protocol=tools
  bench calls-one calls --subset in/rows.jsonl -i org__a-1 -c agent.protocol=tools -c agent.tool_calls=one
}

# tool_runs are with subagents, tools of mini, and tools of an MCP server.
tool_runs() {
  replies delegates 'cat file; echo noted > notes.txt; mini-tool delegate --pass notes.txt "look for the bug"' \
    "echo 'only the subagent saw this'; echo more >> file" "$submit; echo 'found it in line 7'" \
    "mini-tool delegate --json '{\"type\":\"object\",\"required\":[\"n\"]}' 'count the files'" \
    "$submit; echo '{\"m\": 3}'" "$submit; echo '{\"n\": 3}'" \
    'mini-tool delegate "too much for it"; mini-tool delegate' 'true' 'true' 'true' \
    'mini-tool board set plan one; mini-tool board set plan two; mini-tool board get plan; mini-tool board list' \
    "$submit; git diff -- file"
  work delegates delegates -i org__a-1 -c agents.enabled=true -c agents.step_limit=3
  work delegates-limited delegates -i org__a-1 -c agents.enabled=true -c agent.step_limit=3
  work delegates-stopped delegates -i org__a-1 -c agents.enabled=true -c agents.step_limit=3 --total-calls 5
  work delegates-resumed delegates -i org__a-1 -c agents.enabled=true -c agents.step_limit=3 --total-calls 5
  work delegates-resumed delegates -i org__a-1 -c agents.enabled=true -c agents.step_limit=3 --total-calls 50 --resume-attempts
  replies tools "printf 'same\\nsame\\n' > new; mini-tool edit new --old same --new other; mini-tool read new; mini-tool write newer text" \
    'mini-tool note add "tests live in t/"; mini-tool notes; mini-tool noets' 'seq 1 2000' 'mini-tool recall 1 | head -n 3' "$submit; git diff"
  work tools-of-mini tools -i org__a-1 -c tools.files=true -c tools.recall=true -c memory.notes=attempt -c 'skills.use=[large-repositories]'
  cat >tmp/bin/mini-test-mcp <<'E'
#!/bin/bash
# An MCP server on stdin and stdout.
while read -r line; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"books","version":"1.2"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"find","description":"Finds books by their title.","inputSchema":{"type":"object","required":["title"],"properties":{"title":{"type":"string","description":"words of the title"}}}},{"name":"burn","description":"Ends the server.","inputSchema":{"type":"object"}}]}' ;;
    *'"burn"'*) exit 1 ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"found the sea"}]}' ;;
    *) result='{}' ;;
  esac
  [[ -z $id ]] || printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
E
  chmod +x tmp/bin/mini-test-mcp
  echo 'tools: {mcp: [{name: books, command: [mini-test-mcp]}]}' >in/mcp-server.yaml
  replies mcp "mini-tool find --title 'the sea'" 'mini-tool find; echo code $?' 'mini-tool burn; echo code $?' "mini-tool find --json '{\"title\":\"again\"}'" "$submit; echo patch"
  bench mcp mcp --subset in/rows.jsonl -i org__a-1 -c in/mcp-server.yaml
}

# serve starts a model server on loopback, with the replies of in/REPLIES.yaml, and sets its
# addresses. serve_end ends it.
serve() {
  fake-model --replies "in/$1.yaml" "${@:2}" >tmp/vars 2>tmp/server.log &
  server=$!
  until grep -qs ANTHROPIC_BASE_URL tmp/vars; do sleep 0.05; done
  . tmp/vars
  export OPENAI_BASE_URL ANTHROPIC_BASE_URL OPENAI_API_KEY=sk-of-a-test-111 ANTHROPIC_API_KEY=sk-of-a-test-111
}
serve_end() {
  kill -INT $server
  wait $server || true
  unset OPENAI_BASE_URL ANTHROPIC_BASE_URL OPENAI_API_KEY ANTHROPIC_API_KEY
}

provider_runs() {
  local priced=(-c model.price.input=2 -c model.price.output=8)
  replies served 'echo two >> file' 'cat file' "$submit; git diff"
  sed -i '1i "*":' in/served.yaml
  serve served --fault rate-limit@1,4 --fault bad-json@6 --fault cut@8
  work retried '' -m some -w 2 "${priced[@]}"
  work streamed '' -i org__a-1 -m some -c model.stream=true -c model.price.free=true
  work routed '' -i org__a-1 -c in/route.yaml
  work cached '' -i org__a-1 -m some --model-class anthropic "${priced[@]}"
  serve_end
  serve served --fault unauthorized
  work unauthorized '' -m some -c run.max_tries=1 --max-consecutive-provider-failures 2 "${priced[@]}"
  serve_end
  serve served --fault rate-limit@3 --fault overloaded@4 --fault overloaded@5
  work provider-failed '' -i org__a-1 -m some -c model.max_tries=2 -c run.max_tries=1 "${priced[@]}"
  work provider-failed '' -i org__a-1 -m some -c model.max_tries=2 -c run.max_tries=1 "${priced[@]}" --resume-attempts
  work provider-budget '' -m some "${priced[@]}" --total-cost-limit 0.001
  serve_end
  serve served --fault context@3
  work context-full '' -i org__a-1 -m some "${priced[@]}"
  serve_end
  work window four -i org__a-1 -c model.context_window=900
  work too-small four -i org__a-1 -c model.context_window=400
}

# agent_runs are of other agents, which ask the model through mini.
agent_runs() {
  cat >in/agent.yaml <<'E'
command: python3 "$MINI_STATE/agent.py"
version: echo agent 1.0
dialect: chat
tools: true
files:
  agent.py: |
    import json, os, subprocess, sys, urllib.error, urllib.request
    def post(messages, path="/v1/chat/completions"):
        tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "string"}}}}} for name, key in (("bash", "command"), ("task", "prompt"))]
        body = {"model": "mine", "messages": messages, **({"tools": tools} if messages[0]["role"] == "user" else {})}
        request = urllib.request.Request(os.environ["MINI_URL"] + path, json.dumps(body).encode(), {"Authorization": "Bearer " + os.environ["MINI_TOKEN"]})
        return json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    def work(task):
        history = [{"role": "user", "content": task}]
        while True:
            reply = post(history)
            history.append(reply)
            for call in reply.get("tool_calls") or []:
                arguments = json.loads(call["function"]["arguments"])
                if call["function"]["name"] == "task":
                    text = work(arguments["prompt"])
                else:
                    text = subprocess.run(["bash", "-c", arguments["command"]], capture_output=True, text=True).stdout
                history.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            if not reply.get("tool_calls"):
                return reply["content"]
    post([{"role": "system", "content": "Write a title."}, {"role": "user", "content": "for this"}])
    try:
        post([{"role": "user", "content": "x"}], "/v1/embeddings")
    except urllib.error.HTTPError as e:
        print("embeddings:", e.code)
    print(work(sys.stdin.read()))
E
  cat >in/agent-replies.yaml <<'E'
"look at the file":
  - {tool_calls: [{name: bash, arguments: '{"command":"cat file"}'}]}
  - "The file has one line."
"*":
  - {content: "I look.", tool_calls: [{name: task, arguments: '{"prompt":"look at the file"}'}]}
  - {content: "I write.", tool_calls: [{name: bash, arguments: '{"command":"echo two >> file; git diff"}'}]}
  - "All is done."
E
  local priced=(-c model.price.input=2 -c model.price.output=8)
  serve agent-replies
  work agent '' -i org__a-1 -m some --agent in/agent.yaml "${priced[@]}"
  work agent-limited '' -i org__a-1 -m some --agent in/agent.yaml -c agent.step_limit=4 "${priced[@]}"
  echo 'command: echo nothing to do' >in/agent-idle.yaml
  work agent-idle '' -i org__a-1 -m some --agent in/agent-idle.yaml -c run.max_tries=1 "${priced[@]}"
  serve_end
  bench oracle '' --subset demo -i minidemo__keepsake-5 --agent oracle
  bench nop '' --subset demo -i minidemo__keepsake-5 --agent nop
}

# container_runs are in containers, some with verdicts.
container_runs() {
  local two=(--subset demo -i minidemo__ledger-17 -i minidemo__spans-23) wrong=(--model-class scripted --replies wrong)
  in_container() { bench "$1" '' --environment-class docker "${@:2}"; }
  in_container evaluated --subset demo --eval -w 2
  in_container evaluated-wrong --subset demo "${wrong[@]}" --eval -w 2
  in_container evaluated-repeated "${two[@]}" -k 2 -w 2
  in_container evaluated-limited "${two[@]}" -k 3 -w 2 -c agent.step_limit=4 --eval
  mini eval -p runs/evaluated-repeated -i minidemo__ledger-17 >>tmp/eval.out 2>&1 || true
  in_container no-image --subset in/rows.jsonl -i org__a-1 -c environment.image=mini-no-such-image:1 --model-class scripted --replies in/four.yaml -c run.max_tries=1
  died
  printf '%s\n' '{"instance_id":"minidemo__ledger-17","model_name_or_path":"m","model_patch":""}' \
    '{"instance_id":"minidemo__spans-23","model_name_or_path":"m","model_patch":"diff --git a/note b/note\nnew file mode 100644\n--- /dev/null\n+++ b/note\n@@ -0,0 +1 @@\n+x\n"}' \
    '{"instance_id":"minidemo__foldtext-8","model_name_or_path":"m","model_patch":"diff --git a/nowhere b/nowhere\n--- a/nowhere\n+++ b/nowhere\n@@ -1 +1 @@\n-a\n+b\n"}' >in/preds.jsonl
  echo predictions >&2
  mini eval --subset demo -p in/preds.jsonl -o runs/predictions --rerun-failed 1 >>tmp/eval.out 2>&1 || true
  echo gold >&2
  mini eval "${two[@]}" -p gold -o runs/gold >>tmp/eval.out 2>&1 || true
  mkdir in/tasks
  cp -r "$source_dir"/datasets/harbor/testdata/tasks/{rewards,steps-mean,steps-final} in/tasks
  in_container harbor --subset in/tasks --agent oracle -w 2
  in_container harbor-nop --subset in/tasks -i rewards -i steps-final --agent nop -w 2
  replies steps 'echo one > one.txt' "$submit" 'cat hint > two.txt' "$submit"
  in_container harbor-steps --subset in/tasks -i steps-mean --model-class scripted --replies in/steps.yaml
}

# died makes a run whose container ends during the second command. Later the run is resumed.
died() {
  printf '{"instance_id":"golden__died-1","image":"mini-demo-spans:latest","problem_statement":"Mend it."}\n' >in/died.jsonl
  replies died 'echo one > one' 'test -e two || { touch two; sleep 300; }' "$submit; git diff"
  local name
  for name in container-died container-resumed; do
    in_container $name --subset in/died.jsonl --model-class scripted --replies in/died.yaml -c run.max_tries=1 &
    until [[ $(grep -cs '"type":"call"' runs/$name/golden__died-1/attempts/1/journal.jsonl) == 2 ]]; do sleep 0.05; done
    docker kill "$(docker ps -q --filter label=mini.instance=golden__died-1)" >/dev/null
    wait $!
  done
  in_container container-resumed --subset in/died.jsonl --model-class scripted --replies in/died.yaml --resume-attempts
}

# other_runs are made from runs and files.
other_runs() {
  mkdir in/formats
  cp "$source_dir"/trajectories/formats/testdata/*.* in/formats
  import() {
    echo "$1" >&2
    mini import -o "runs/$1" "${@:2}" >>tmp/import.out 2>&1 || true
  }
  import imported-mini-swe-agent in/formats/release*
  import imported-swe-agent in/formats/swe-agent*
  import imported-openhands in/formats/openhands*
  import imported-messages in/formats/{atif,list,messages,rows}.*
  import imported runs/repeated runs/delegates runs/summarized runs/killed
  mini export runs/delegates runs/summarized --format atif -o in/atif >>tmp/import.out 2>&1
  import imported-back in/atif
  replies branch 'never' 'never' 'echo more >> file' "$submit; git diff"
  branch() {
    echo "$1" >&2
    mini replay "${@:2}" --yes --model-class scripted -m other --replies in/branch.yaml -c "run.env_startup_command=$start" -o "runs/$1" >>tmp/branch.out 2>&1 || true
  }
  branch branch runs/text -i org__a-1 --from-step 2
  branch branch runs/text -i org__a-1 --from-step 1
  branch branch-again runs/branch -i org__a-1 --attempt 1 --from-step 3
  branch branch-forced runs/diverged-forced -i org__a-1 --from-step 2 --force
  mini label runs/text org__a-1 flaky look-again >/dev/null
  mini label runs/text org__b-1 flaky >/dev/null
  full_disk
  results_only
}

# full_disk makes a run on a file system that becomes full.
full_disk() {
  mkdir runs/full-disk
  mount -t tmpfs -o size=96k tmpfs runs/full-disk
  work full-disk counts || true
  cp -a runs/full-disk tmp/full-disk
  umount runs/full-disk
  rmdir runs/full-disk
  mv tmp/full-disk runs/full-disk
}

# results_only writes folders without journals, as users copy them from other machines, and
# folders with damaged files.
results_only() {
  local result='"class":"submitted","exit_status":"Submitted","attempt":1,"steps":5,"usage":{},"cost":0.5,"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:01:00Z","seconds":60,"patch_bytes":10'
  mkdir -p runs/results-only runs/results-torn runs/old/x__y-1/attempts/{1,2}
  printf '{"format":"mini-1","instances":{"x__y-1":{%s,"verdict":"resolved","attempts":1},"x__y-2":{%s,"verdict":"unresolved","attempts":2,"samples":[{"sample":1,%s,"verdict":"unresolved"},{"sample":2,%s,"verdict":null}]}}}\n' \
    "$result" "$result" "$result" "$result" >runs/results-only/results.json
  printf '{"format":"mini-1","sessions":[{"started":"2026-01-01T00:00:00Z","ended":"2026-01-01T01:00:00Z"}],"dataset":{"name":"rows","selected":3},"model":{"class":"openai","name":"m"},"environment":{"class":"docker"}}\n' |
    tee runs/results-only/run.json runs/results-torn/run.json >runs/old/run.json
  cp -r runs/text/org__a-1 runs/results-torn
  printf '{"format":"mini-1","instan' >runs/results-torn/results.json
  printf '{"format":"mini-labels-1","lab' >runs/results-torn/labels.json
  # The first versions had no repetition in the header, and no times in the outcome.
  sed -e '1s/,"sample":1//' -e 's/,"times":{[^}]*}//' runs/text/org__a-1/attempts/1/journal.jsonl >runs/old/x__y-1/attempts/1/journal.jsonl
  echo 'not a record' >runs/old/x__y-1/attempts/2/journal.jsonl
}

# session makes a session in repo on a terminal: session NAME REPLIES STEP... -- FLAG...
# A step is a text to wait for and, after a bar, what is typed at the question that follows
# or, after a caret, what is typed at once.
session() {
  local name=$1 script=$2 steps=() step start=1
  shift 2
  while [[ $1 != -- ]]; do steps+=("$1") && shift; done
  shift
  echo "session $name" >&2
  git -C repo checkout -q . && git -C repo clean -fdq
  mkfifo tmp/keys
  (cd repo && exec script -qfec "mini --plain --model-class scripted -c model.replies=../in/$script.yaml $(printf '%q ' "$@")" /dev/null <../tmp/keys >../tmp/screen 2>&1) &
  local job=$!
  exec 3>tmp/keys
  for step in "${steps[@]}"; do
    await "${step%%[|^]*}"
    [[ $step != *'|'* ]] || await '> '
    printf '%b' "${step#*[|^]}" >&3
  done
  exec 3>&-
  wait $job || true
  rm tmp/keys
  cp tmp/screen "tmp/session-$name.out"
}
# await waits for a text on the screen after the last one.
await() {
  local text
  for _ in {1..600}; do
    text=$(tail -c "+$start" tmp/screen | tr -d '\000')
    if [[ $text == *"$1"* ]]; then
      text=${text%%"$1"*}$1
      start=$((start + $(printf %s "$text" | wc -c)))
      return
    fi
    sleep 0.05
  done
  echo "golden-runs: no \"$1\" on the screen:" >&2
  cat tmp/screen >&2
  return 1
}
# quiet_session makes one without a terminal.
quiet_session() {
  echo "session $1" >&2
  (cd repo && mini -y --model-class scripted -c "model.replies=../in/$2.yaml" "${@:3}" </dev/null >"../tmp/session-$1.out" 2>&1) || true
}

session_runs() {
  local confirm='Run this command?' next='submitted its work' marker='true && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'
  replies talk 'echo two >> README' 'cat README' "$marker"
  replies more never never never 'echo three >> README' "$marker" 'echo four >> README' "$marker"
  replies slow 'echo so far; sleep 60' 'sleep 1; echo slept' 'echo two >> README' "$marker"
  replies leave 'echo x > ../left' 'git push --force' "$marker"
  quiet_session submitted talk -t 'mend it'
  quiet_session continued more --continue -t 'now mend the rest'
  quiet_session limited talk -t 'mend it' -c agent.step_limit=1
  quiet_session denied leave -t 'mend it' -c policy.unattended=deny
  quiet_session subagents delegates -t 'mend it' -c agents.enabled=true -c agents.step_limit=3 -o ../sessions/subagents.traj.json
  session confirmed talk "$confirm|\\n" "$confirm|leave it alone\\n" "$confirm|\\n" "$next|\\n" -- -t 'mend it'
  session followed more "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$next|and the rest\\n" "$confirm|\\n" "$confirm|\\n" "$next|/undo\\n" "Undo all changes|y\\n" "$next|\\n" -- -t 'mend it'
  session commands talk "$confirm|!echo mine >> README\\n" "$confirm|/u\\n" "Your command|ls\\n" "Your command|/y\\n" "$next|\\n" -- -t 'mend it'
  session interrupted slow 'so far^\003' 'Message to the model?|try it again\n' 'Step 2.^and look at README\n' "$next|\n" -- -y -t 'mend it'
  session raised talk 'Limit reached|+5\n' "$next|\\n" -- -y -t 'mend it' -c agent.step_limit=1
  session quit talk "$confirm|\\n" "$confirm|\\004" -- -t 'mend it'
  session resumed more 'What comes next?|\n' "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$next|\\n" -- --continue
  session compacted counts "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|/compact keep the names\\n" \
    "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$next|\\n" -- -t 'count'
  session switched talk "$confirm|/model other\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$next|/new another task\\n" "$confirm|\\n" "$confirm|\\n" "$confirm|\\n" "$next|\\n" -- -t 'mend it'
}

# pack packs what the test reads. A run must not seem to belong to a process of the machine
# that reads it. The .traj.json files of runs follow from their journals.
pack() {
  find runs -name control.json -delete -o -name '*.traj.json' -delete
  find runs -name .lock -exec sh -c 'for f; do echo 999999999 >"$f"; done' sh {} +
  rm -rf in/formats in/atif home/.cache home/.local/state/mini/{verdict.key,sessions/*/*.files}
  find home -path '*/sessions/*.json' -exec sed -i "s|$PWD|FOLDER|" {} +
  tar --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner --mode=u+rw,go= -cf - home in runs sessions | gzip -9n >"$1"
}

# open_runs compares what OLD and NEW say about runs that NEW makes.
open_runs() {
  local old=$PWD/tmp/old/mini run command differences=0 outputs=0
  work text four -w 3
  work tools four -i org__a-1 -c agent.protocol=tools
  work repeated four -i org__a-1 -k 3
  work limited four -i org__a-1 -c agent.step_limit=2
  work budget-resumed four -i org__a-1 --total-calls 2
  work budget-resumed four -i org__a-1 --total-calls 9 --resume-attempts
  work summarized counts -i org__a-1 -c in/short.yaml
  work elided counts -i org__a-1 -c in/short.yaml -c agent.compaction=elide
  bench errors errors --subset in/rows.jsonl
  image_runs
  stopped KILL killed paused -i org__a-1
  tool_runs
  for run in runs/*; do
    local journal commands=("report $run" "report $run --json" "inspect $run" "inspect $run --all --json")
    for journal in "$run"/*/attempts/*/journal.jsonl; do
      commands+=("inspect $journal --plain --reasoning" "report $run -i $(cut -d/ -f3 <<<"$journal")")
    done
    for command in openai sharegpt axolotl prompt-completion atif traj preds table 'table --parquet'; do
      commands+=("export $run -o tmp/export --format $command --force")
    done
    for command in "${commands[@]}"; do
      said "$old" $command >tmp/said-by-old
      said mini $command >tmp/said-by-new
      outputs=$((outputs + 1))
      diff -a --label "OLD: mini $command" --label "NEW: mini $command" -U1 tmp/said-by-old tmp/said-by-new || differences=$((differences + 1))
    done
  done
  echo "$outputs outputs about $(ls runs | wc -l) runs: $differences differ"
  [[ $differences == 0 ]]
}
# said prints the output and the exit code of a command, and the files that it exports.
said() {
  rm -rf tmp/export
  local code=0
  "$@" 2>&1 || code=$?
  echo "exit code $code"
  [[ ! -e tmp/export ]] || find tmp/export -type f | sort | xargs head -c -0
}

if [[ ${1-} == --open ]]; then
  prepare "$3" "$4"
  install -D "$2" tmp/old/mini
  open_runs
  exit
fi
prepare "$1" "$2"
simple_runs
stopped_runs
compacted_runs
image_runs
tool_runs
provider_runs
agent_runs
container_runs
session_runs
other_runs
[[ $# -lt 3 ]] || pack "$3"
