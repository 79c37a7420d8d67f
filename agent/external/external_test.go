package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/raw"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-provider-key-0123456789"

var price = model.Price{Input: 2, Output: 8}

// journal keeps records in memory.
type journal struct {
	mu      sync.Mutex
	records []trajectories.Record
}

func (j *journal) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	encoded, err := json.Marshal(data)
	r := trajectories.Record{ID: len(j.records) + 1, Type: t, Data: encoded}
	j.records = append(j.records, r)
	return r, err
}

// attempt is an attempt of an agent in a folder with the file a.txt.
type attempt struct {
	provider *fake.Server
	url      string
	journal  journal
	dir      string
	session  agent.Session
}

func newAttempt(t *testing.T, c fake.Config) *attempt {
	t.Helper()
	repo := agenttest.NewRepository(t)
	a := &attempt{dir: repo.Dir}
	c.Price = price
	var err error
	if c.Script == nil {
		if c.Script, err = scripted.Parse("r", []byte(`"*": ["Look:\n\n`+"```bash\\ncat a.txt\\n```"+`", "Change:\n\n`+"```bash\\necho two >> a.txt\\n```"+`", "`+"```bash\\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n```"+`"]`)); err != nil {
			t.Fatal(err)
		}
	}
	if a.provider, err = fake.New(c); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = a.provider.Serve(l) // ends with Close
	}()
	client := &http.Client{Transport: &http.Transport{}}
	a.url = "http://" + l.Addr().String()
	sandbox, err := local.New(t.Context(), local.Config{Dir: a.dir, Helper: childtest.Program(t)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, sandbox.Close(context.WithoutCancel(t.Context())))
		client.CloseIdleConnections()
		assert.NoError(t, a.provider.Close())
		<-served
	})
	m := raw.New(raw.Config{BaseURL: a.url + "/v1", Key: key, Price: price, HTTPClient: client})
	a.session = agent.Session{
		Model: retry.New(m, retry.Policy{MaxTries: 2}), Environment: untimed{sandbox, false}, Recorder: &a.journal, Task: agent.Task{Text: "fix it"},
		Repository: repo,
	}
	return a
}

// useGit makes the folder a repository of git.
func (a *attempt) useGit(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", `git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm base`)
	cmd.Dir = a.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a.session.Repository = nil
}

// untimed pauses an attempt's clock during all commands but the agent's, so that a slow
// machine does not reach a short time limit too early.
type untimed struct {
	env.Environment
	untilOutput bool // pause it during the agent's command too, until that prints
}

func (u untimed) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Bridge != nil && !u.untilOutput {
		return u.Environment.Execute(ctx, c)
	}
	resume := sync.OnceFunc(model.BeginPause(ctx))
	defer resume()
	if onOutput := c.OnOutput; c.Bridge != nil {
		c.OnOutput = func(p []byte) {
			resume()
			if onOutput != nil {
				onOutput(p)
			}
		}
	}
	return u.Environment.Execute(ctx, c)
}

func (a *attempt) run(t *testing.T, cfg agent.Config, def external.Definition) trajectories.Outcome {
	t.Helper()
	return a.runWith(t, cfg, def, external.Config{})
}

func (a *attempt) runWith(t *testing.T, cfg agent.Config, def external.Definition, run external.Config) trajectories.Outcome {
	t.Helper()
	run.ModelName, run.Dialects = "real", []string{"chat", "responses", "messages", "gemini"}
	cfg.SystemTemplate, cfg.InstanceTemplate, cfg.ObservationTemplate, cfg.FormatErrorTemplate = "s", "i", "o", "f"
	cfg.MaxFormatErrors, cfg.Autosubmit, cfg.PatchExclude = 3, true, def.Exclude
	own, err := agent.New(cfg)
	require.NoError(t, err)
	if def.Name == "" {
		def.Name = "test"
	}
	if def.Prompt == "" {
		def.Prompt, def.Task = external.PromptStdin, "{task}"
	}
	return external.New(own, def, run).Run(t.Context(), a.session)
}

// ask is a shell function that makes one request and prints the answer.
const ask = `ask() {
local path=${1:-/v1/chat/completions} body=${2:-'{"model":"m","messages":[{"role":"user","content":"fix it"}]}'}
exec 3<>/dev/tcp/${MINI_BRIDGE%:*}/${MINI_BRIDGE#*:} || return
printf 'POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$path" "$MINI_TOKEN" ${#body} "$body" >&3
cat <&3
}
`

func TestOutcomes(t *testing.T) {
	soon := func(c *agent.Config, s *agent.Session) { // after the first output
		c.WallTimeLimit = 1
		if u, ok := s.Environment.(untimed); ok {
			s.Environment = untimed{u.Environment, true}
		}
	}
	for name, tt := range map[string]struct {
		command string
		change  func(*agent.Config, *agent.Session)
		fault   string
		exclude []string
		grace   time.Duration
		class   trajectories.Class
		status  string
		steps   int
		git     bool   // the folder is a repository of git
		patch   bool   // the patch adds "two" to a.txt
		text    string // in the error or a warning
		record  string // in a record of the journal
	}{
		"exits at once":   {command: "exit 0", class: trajectories.Environment, status: "AgentNotStarted", text: "exit code 0"},
		"is missing":      {command: "no-such-agent", class: trajectories.Environment, status: "AgentNotStarted", text: "not found"},
		"works":           {command: "ask; echo two >> a.txt", class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true},
		"fails":           {command: "ask; echo two >> a.txt; exit 3", class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true, text: "AgentExited(3)"},
		"commits":         {command: "ask; echo two >> a.txt; git -c user.name=a -c user.email=a@b commit -qam x", git: true, class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true},
		"forks and stays": {command: "ask; (setsid sleep 600 &); echo two >> a.txt", class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true},
		"writes 50 MB":    {command: "ask; head -c 50000000 /dev/zero; echo two >> a.txt", class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true},
		"speaks garbage":  {command: "ask; head -c 300000 /dev/urandom >/dev/tcp/${MINI_BRIDGE%:*}/${MINI_BRIDGE#*:}; echo two >> a.txt", class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true},
		"leaves state": {
			command: "ask; mkdir .state; echo two > .state/x; echo two >> a.txt", exclude: []string{".state/"}, git: true,
			class: trajectories.Submitted, status: "Submitted", steps: 1, patch: true,
		},
		"never exits": {
			command: "ask >/dev/null; echo two >> a.txt; echo done; sleep 600", change: soon,
			class: trajectories.Limit, status: "TimeExceeded", steps: 1, patch: true,
		},
		"never asks": {
			command: "sleep 600", change: func(c *agent.Config, _ *agent.Session) { c.WallTimeLimit = 1 },
			class: trajectories.Environment, status: "AgentNotStarted",
		},
		"reconnects for ever": {
			command: "ask >/dev/null; echo two >> a.txt; echo done; while true; do exec 3<>/dev/tcp/${MINI_BRIDGE%:*}/${MINI_BRIDGE#*:}; sleep 0.1; done", change: soon,
			class: trajectories.Limit, status: "TimeExceeded", steps: 1, patch: true,
		},
		"at the step limit": {
			command: "ask; ask | grep -q 'attempt limit reached' && echo two >> a.txt", change: func(c *agent.Config, _ *agent.Session) { c.StepLimit = 1 },
			class: trajectories.Limit, status: "LimitsExceeded", steps: 1, patch: true,
		},
		"ignores the limit": {
			command: "ask; echo two >> a.txt; while true; do ask; sleep 0.2; done", grace: time.Second, change: func(c *agent.Config, _ *agent.Session) { c.StepLimit = 2 },
			class: trajectories.Limit, status: "LimitsExceeded", steps: 2, patch: true,
		},
		"without a budget": {
			command: "ask", change: func(_ *agent.Config, s *agent.Session) {
				s.ReserveCall = func() error { return agent.ErrBudgetExhausted }
			},
			class: trajectories.Interrupted, status: "BudgetExhausted",
		},
		"counts tokens": {
			command: `ask /v1/messages/count_tokens '{"messages":[],"plugins":[]}' | grep -q input_tokens && ask; ask; echo two >> a.txt`,
			change:  func(c *agent.Config, _ *agent.Session) { c.StepLimit = 2 },
			class:   trajectories.Submitted, status: "Submitted", steps: 2, patch: true,
			text: "FieldDropped: the field plugins of the agent's requests (messages)", record: `"path":"/v1/messages/count_tokens","count":true`,
		},
		"names a file": {
			command: `ask; ask /v1/chat/completions '{"messages":[{"image":"https://example.org/x"}]}'; echo two >> a.txt`,
			class:   trajectories.Submitted, status: "Submitted", steps: 1, patch: true, text: "RequestRefused: messages[0].image: an address",
		},
		"with a wrong key": {command: "ask", fault: "unauthorized", class: trajectories.Provider, status: "AuthenticationError", steps: 1},
		"out of context":   {command: "ask; echo two >> a.txt", fault: "context", class: trajectories.Limit, status: "ContextWindowExceeded", steps: 1, patch: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c fake.Config
			if tt.fault != "" {
				c.Plan = &fake.Plan{Rules: []fake.Rule{{Faults: []string{tt.fault}}}}
			}
			a := newAttempt(t, c)
			if tt.git {
				a.useGit(t)
			}
			var cfg agent.Config
			if tt.change != nil {
				tt.change(&cfg, &a.session)
			}
			out := a.runWith(t, cfg, external.Definition{Command: ask + tt.command, Exclude: tt.exclude}, external.Config{LimitGrace: tt.grace})
			if out.Class != tt.class || out.ExitStatus != tt.status || out.Steps != tt.steps {
				t.Errorf("outcome %s %s after %d steps: %s", out.Class, out.ExitStatus, out.Steps, out.Error)
			}
			if bytes.Contains(out.Submission, []byte("+two")) != tt.patch || bytes.Contains(out.Submission, []byte(".state")) {
				t.Errorf("submission %q", out.Submission)
			}
			assert.Contains(t, out.Error+strings.Join(out.Warnings, "\n"), tt.text, "error %q, warnings %q", out.Error, out.Warnings)
			if !slices.ContainsFunc(a.journal.records, func(r trajectories.Record) bool { return bytes.Contains(r.Data, []byte(tt.record)) }) {
				t.Errorf("no record has %s", tt.record)
			}
			if books := a.provider.Stats().Charged; out.Usage != books.Usage || out.Cost-books.Cost > 1e-12 || books.Cost-out.Cost > 1e-12 {
				t.Errorf("usage %+v, %v; charged %+v, %v", out.Usage, out.Cost, books.Usage, books.Cost)
			}
		})
	}
}

// TestScriptAgents runs a whole agent in each dialect. The journal has its conversation and
// its commands, as the agent itself wrote them down.
func TestScriptAgents(t *testing.T) {
	program, err := os.ReadFile("testdata/agent.py")
	require.NoError(t, err)
	for _, args := range []string{"chat plain", "chat stream", "chat plain text", "responses plain", "responses stream", "messages plain", "messages stream", "gemini plain", "gemini stream"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, fake.Config{CheckKey: func(k string) bool { return k == key }})
			log := filepath.Join(t.TempDir(), "agent.json")
			out := a.run(t, agent.Config{}, external.Definition{
				Command: `python3 "$MINI_STATE/agent.py" ` + args, Env: map[string]string{"AGENT_LOG": log}, Files: map[string]string{"agent.py": string(program)},
			})
			if out.ExitStatus != "Submitted" || out.Steps != 3 || !bytes.Contains(out.Submission, []byte("+two")) {
				t.Fatalf("outcome %+v", out)
			}
			if books := a.provider.Stats().Charged; out.Usage != books.Usage || books.Replies != 3 {
				t.Errorf("usage %+v; charged %+v", out.Usage, books)
			}
			checkJournal(t, a.journal.records, log)
		})
	}
}

// checkJournal compares the messages and commands of a journal with the agent's own file.
func checkJournal(t *testing.T, records []trajectories.Record, log string) {
	t.Helper()
	commands, observations, lastReply := readJournal(t, records, log)
	if strings.Join(commands, "|") != "cat a.txt|echo two >> a.txt" || len(observations) != 2 || observations[0] != "one\n" {
		t.Errorf("commands %q, observations %q", commands, observations)
	}
	if len(lastReply.Actions) != 1 || !strings.Contains(lastReply.Actions[0], "COMPLETE_TASK") {
		t.Errorf("last reply %+v", lastReply)
	}
}

// readJournal returns what a journal says, which the agent's own file has to say too.
func readJournal(t *testing.T, records []trajectories.Record, log string) (commands, observations []string, lastReply trajectories.Message) {
	t.Helper()
	own, err := os.ReadFile(log)
	require.NoError(t, err)
	for _, r := range records {
		switch r.Type {
		case trajectories.TypeExecution:
			var x trajectories.Execution
			require.NoError(t, json.Unmarshal(r.Data, &x))
			commands = append(commands, x.Command)
		case trajectories.TypeMessage:
			var m trajectories.Message
			require.NoError(t, json.Unmarshal(r.Data, &m))
			if m.Cause == trajectories.CauseObservation {
				observations = append(observations, m.Content)
			}
			if m.Cause == trajectories.CauseReply {
				lastReply = m
			}
			for _, text := range append(strings.Split(m.Content, "\n"), m.Actions...) {
				quoted := jsonText(t, text)
				if !bytes.Contains(own, quoted) && !bytes.Contains(own, jsonText(t, string(quoted))) { // arguments are JSON in JSON
					t.Errorf("the agent's file has no %s", quoted)
				}
			}
		}
		if bytes.Contains(r.Data, []byte(key)) {
			t.Errorf("record %d has the provider's key", r.ID)
		}
	}
	return commands, observations, lastReply
}

// jsonText returns text as in a JSON string.
func jsonText(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(text))
	return bytes.Trim(bytes.TrimSpace(b.Bytes()), `"`)
}

func TestPromptTooLong(t *testing.T) {
	a := newAttempt(t, fake.Config{})
	a.session.Task.Text = strings.Repeat("x", 200_000)
	if out := a.run(t, agent.Config{}, external.Definition{Command: "true", Prompt: external.PromptArgument, Task: "{task}"}); out.ExitStatus != string(env.SetupFailed) {
		t.Errorf("outcome %+v", out)
	}
	if out := a.run(t, agent.Config{}, external.Definition{Command: ask + `ask; test $(wc -c <"$MINI_PROMPT_FILE") = 200000 && echo two >> a.txt`, Prompt: external.PromptFile, Task: "{task}"}); !bytes.Contains(out.Submission, []byte("+two")) {
		t.Errorf("outcome %+v", out)
	}
}

func TestInvalidDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "command", "command: x\nprompt: telepathy": "prompt", "command: x\ndialect: latin": "dialect",
		"command: x\ninstall_network: host": "install_network", "command: x\ninstall: " + strings.Repeat("x", 40<<10): "install",
		"command: x\nenv: {'A;rm': b}": "env", "command: x\nfiles: {../x: y}": "files", "comand: x": "comand", "command: x\nserver_tools: on": "server_tools",
	} {
		_, err := external.Parse([]byte(text))
		assert.ErrorContains(t, err, want, "%q", text)
	}
}
