package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scriptedModel returns the given replies.
type scriptedModel struct {
	mu      sync.Mutex
	replies []model.Reply
	errs    map[int]error // by call, from 0
	prompts [][]model.Message
}

func (s *scriptedModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.prompts)
	s.prompts = append(s.prompts, append([]model.Message(nil), messages...))
	if err := s.errs[n]; err != nil {
		return model.Reply{}, err
	}
	if n >= len(s.replies) {
		<-ctx.Done() // a provider that never answers
		return model.Reply{}, ctx.Err()
	}
	return s.replies[n], nil
}

func replies(contents ...string) *scriptedModel {
	s := &scriptedModel{}
	for _, c := range contents {
		s.replies = append(s.replies, model.Reply{
			Message: model.Message{Role: model.Assistant, Content: c}, FinishReason: model.FinishStop,
			Cost: 0.25, Usage: model.Usage{Prompt: 10, Completion: 2}, Tries: 1,
		})
	}
	return s
}

func bash(command string) string { return "thought\n```bash\n" + command + "\n```" }

const submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// testRecorder keeps records in memory.
type testRecorder struct {
	mu      sync.Mutex
	records []trajectories.Record
	fail    func(trajectories.Type) error
}

func (m *testRecorder) Append(t trajectories.Type, data any) (trajectories.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(t); err != nil {
			return trajectories.Record{}, err
		}
	}
	raw, err := json.Marshal(data)
	r := trajectories.Record{ID: len(m.records) + 1, Type: t, Data: raw}
	m.records = append(m.records, r)
	return r, err
}

func (m *testRecorder) types() string {
	var s []string
	for _, r := range m.records {
		s = append(s, string(r.Type))
	}
	return strings.Join(s, " ")
}

func config() agent.Config {
	return agent.Config{
		SystemTemplate:      "at {{.cwd}}",
		InstanceTemplate:    "{{.task}}",
		ObservationTemplate: "{{with .exception}}<{{.}}>{{end}}{{with .background}}(left: {{.}}){{end}}[{{.returncode}}] {{.output}}",
		FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors:     3, Autosubmit: true, Timeout: 20 * time.Second,
	}
}

// gitSandbox returns a sandbox in a new repository with one file.
func gitSandbox(t *testing.T) env.Environment {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec",
		`git init -q . && echo one > a.txt && git add . && git -c user.name=a -c user.email=a@b commit -qm base`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sandbox, err := local.New(t.Context(), local.Config{Dir: dir, Helper: childtest.Program(t)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sandbox.Close(context.WithoutCancel(t.Context()))) })
	return sandbox
}

// untimed pauses an attempt's clock during commands that do not sleep. A slow
// machine then does not reach a short time limit before the sleep.
type untimed struct{ env.Environment }

func (u untimed) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if !strings.Contains(c.Script, "sleep") {
		defer model.BeginPause(ctx)()
	}
	return u.Environment.Execute(ctx, c)
}

// run runs an attempt at a repository in memory.
func run(ctx context.Context, t *testing.T, cfg agent.Config, s *scriptedModel, rec agent.Recorder) trajectories.Outcome {
	t.Helper()
	repo := agenttest.NewRepository(t)
	return runIn(ctx, t, cfg, repo.Sandbox, repo, s, rec)
}

// runWithGit runs an attempt with real bash and git.
func runWithGit(ctx context.Context, t *testing.T, cfg agent.Config, s *scriptedModel, rec agent.Recorder) trajectories.Outcome {
	t.Helper()
	return runIn(ctx, t, cfg, gitSandbox(t), nil, s, rec)
}

func runIn(ctx context.Context, t *testing.T, cfg agent.Config, sandbox env.Environment, repo agent.Repository, s *scriptedModel, rec agent.Recorder) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(cfg)
	require.NoError(t, err)
	return a.Run(ctx, agent.Session{Model: s, Environment: untimed{sandbox}, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"}})
}

func TestOutcomes(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := []struct {
		name       string
		change     func(*agent.Config)
		script     *scriptedModel
		class      trajectories.Class
		status     string
		steps      int
		submission string // required part of the submission; "" for none
		partial    string // likewise
		auto       bool
		git        bool // needs bash and git
	}{
		{
			name: "submitted", script: replies(edit, bash(submit+" && git diff")),
			class: trajectories.Submitted, status: "Submitted", steps: 2, submission: "+two",
		},
		{
			name: "submitted nothing", script: replies(bash(submit)),
			class: trajectories.Submitted, status: "Submitted", steps: 1,
		},
		{
			name: "steps", change: func(c *agent.Config) { c.StepLimit = 1 }, script: replies(edit),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 1, submission: "+two", auto: true,
		},
		{
			name: "cost", change: func(c *agent.Config) { c.CostLimit = 0.5 }, script: replies(edit, bash("true")),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "no autosubmit", change: func(c *agent.Config) { c.StepLimit, c.Autosubmit = 1, false }, script: replies(edit),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 1, partial: "+two",
		},
		{
			name: "wall time, while the model thinks", change: func(c *agent.Config) { c.WallTimeLimit = 3 }, script: replies(edit),
			class: trajectories.Limit, status: "TimeExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "wall time, in mid-command", change: func(c *agent.Config) { c.WallTimeLimit = 3 }, script: replies(edit, bash("sleep 600")),
			class: trajectories.Limit, status: "TimeExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "format errors in a row", script: replies(edit, "a", "b", "c"),
			class: trajectories.Limit, status: "RepeatedFormatError", steps: 4, submission: "+two", auto: true,
		},
		{
			name: "format errors that are not in a row", script: replies("a", "b", edit, "c", bash("false"), "d", bash(submit)),
			class: trajectories.Submitted, status: "Submitted", steps: 7,
		},
		{
			name: "the provider", script: &scriptedModel{replies: replies(edit).replies, errs: map[int]error{1: &model.Error{Status: model.RateLimited}}},
			class: trajectories.Provider, status: "RateLimited", steps: 2, partial: "+two",
		},
		{
			name: "the context window", script: &scriptedModel{replies: replies(edit).replies, errs: map[int]error{1: &model.Error{Status: model.ContextWindowExceeded}}},
			class: trajectories.Limit, status: "ContextWindowExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "the provider refuses", script: &scriptedModel{replies: replies(edit).replies, errs: map[int]error{1: &model.Error{Status: model.ContentRefused}}},
			class: trajectories.Limit, status: "ContentRefused", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "a defect", script: &scriptedModel{replies: replies(edit).replies, errs: map[int]error{1: errors.New("surprise")}},
			class: trajectories.Internal, status: "InternalError", steps: 2, partial: "+two",
		},
		{
			name: "start-up command fails", change: func(c *agent.Config) { c.StartupCommand = "echo no; exit 3" }, script: replies(),
			class: trajectories.Environment, status: "SetupFailed",
		},
		{
			name: "text that is not UTF-8", script: replies(bash(`printf 'caf\xe9\n' > b.txt; git add -N b.txt`), bash(submit+" && git diff")),
			class: trajectories.Submitted, status: "Submitted", steps: 2, submission: "GIT binary patch",
			git: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			if tt.change != nil {
				tt.change(&cfg)
			}
			rec := &testRecorder{}
			attempt := run
			if tt.git {
				attempt = runWithGit
			}
			out := attempt(t.Context(), t, cfg, tt.script, rec)
			got := []any{out.Class, out.ExitStatus, out.Steps, out.Autosubmitted}
			want := []any{tt.class, tt.status, tt.steps, tt.auto}
			assert.NoDiff(t, cmp.Diff(want, got), "outcome (-want +got): %s %v", out.Error, out.Warnings)
			for _, p := range []struct{ name, want, got string }{
				{"submission", tt.submission, string(out.Submission)}, {"partial patch", tt.partial, string(out.PartialPatch)},
			} {
				if p.want == "" && p.got != "" || !strings.Contains(p.got, p.want) {
					t.Errorf("%s is %q, want %q", p.name, p.got, p.want)
				}
			}
			if types := rec.types(); !strings.HasSuffix(types, "outcome") {
				t.Errorf("the last record is not the outcome: %s", types)
			}
			if tt.class != trajectories.Environment && !strings.Contains(rec.types(), "diff") {
				t.Errorf("no diff was kept: %s", rec.types())
			}
		})
	}
}

// lostSandbox is a sandbox that fails at the command "lose it".
type lostSandbox struct {
	env.Environment
	status env.Status
}

func (s lostSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Script == "lose it" {
		return env.Result{ExitCode: -1}, &env.Error{Status: s.status, Op: "execute command", Hint: "look at it"}
	}
	return s.Environment.Execute(ctx, c)
}

func (s lostSandbox) Info() env.Info {
	info := s.Environment.Info()
	info.NetworkProof = "unproven: DNS answers"
	return info
}

// A lost sandbox has no working diff. Only SandboxLimitExceeded counts as a result.
func TestLostSandbox(t *testing.T) {
	for status, class := range map[env.Status]trajectories.Class{
		env.ContainerDied:        trajectories.Environment,
		env.SandboxDisrupted:     trajectories.Environment,
		env.SandboxLimitExceeded: trajectories.Limit,
	} {
		t.Run(string(status), func(t *testing.T) {
			a, err := agent.New(config())
			require.NoError(t, err)
			rec := &testRecorder{}
			repo := agenttest.NewRepository(t)
			out := a.Run(t.Context(), agent.Session{
				Model:       replies(bash("echo two >> a.txt"), bash("lose it")),
				Environment: lostSandbox{repo.Sandbox, status}, Repository: repo, Recorder: rec, Task: agent.Task{Text: "task"},
			})
			if out.Class != class || out.ExitStatus != string(status) || out.Error == "" || out.Hint == "" {
				t.Errorf("%s %s, error %q, hint %q", out.Class, out.ExitStatus, out.Error, out.Hint)
			}
			isLost := func(r trajectories.Record) bool {
				return r.Type == trajectories.TypeExecution && strings.Contains(string(r.Data), `"exception":"no result: `)
			}
			if !slices.ContainsFunc(rec.records, isLost) {
				t.Error("no record says that the command has no result")
			}
			if last := rec.records[len(rec.records)-1]; !strings.Contains(string(last.Data), `"network_proof":"unproven: DNS answers"`) {
				t.Errorf("the last record is %s", last.Data)
			}
			if len(out.Submission)+len(out.PartialPatch) > 0 || out.Autosubmitted || strings.Contains(rec.types(), "diff") {
				t.Errorf("submission %q, partial patch %q, records %s", out.Submission, out.PartialPatch, rec.types())
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	cfg := config()
	cfg.Timeout = 10 * time.Second
	s := replies(
		"no command at all",
		bash("a")+"\n"+bash("b"),
		bash("echo out; echo err >&2; exit 3"),
		bash("echo before; sleep 600"),
		bash("printf 'x\\0y'"),
		bash("echo it has a \x00 in it"),
		bash("kill -9 $$"),
		bash("sleep 600 & echo left"),
		bash(submit),
	)
	s.replies[0].FinishReason = model.FinishLength
	cfg.MaxFormatErrors = 0
	rec := &testRecorder{}
	out := runWithGit(t.Context(), t, cfg, s, rec)
	require.Equal(t, trajectories.Submitted, out.Class, "%+v", out)
	last := s.prompts[len(s.prompts)-1]
	wants := []string{
		"token limit and was cut off",
		"2 commands, and exactly one is needed",
		"[3] out\nerr\n",
		"did not end within 10s and was killed, with everything it had started.>[-1] before\n",
		"[0] x\x00y",
		"was not run. ",
		"killed by signal 9.>[137] ",
		"(left: ",
	}
	for i, want := range wants {
		reply, observation := last[2+2*i], last[3+2*i]
		if reply.Role != model.Assistant || observation.Role != model.User || !strings.Contains(observation.Content, want) {
			t.Errorf("after reply %d, %s %q lacks %q", i, observation.Role, observation.Content, want)
		}
	}
	// A prompt starts with the previous one, byte for byte.
	for i := 1; i < len(s.prompts); i++ {
		assert.Equal(t, s.prompts[i-1], s.prompts[i][:len(s.prompts[i-1])], "call %d changed the history", i)
	}
}

// approverFunc is an Approver from a function.
type approverFunc func(agent.ApprovalRequest) agent.Decision

func (d approverFunc) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	return d(p), nil
}

// An attempt ends if a record cannot be written, also that of a call that is not run.
func TestRecorderFails(t *testing.T) {
	for name, tt := range map[string]struct {
		typ    trajectories.Type
		after  int // records of the type before the failure
		err    error
		class  trajectories.Class
		status string
	}{
		"the disk is full":        {trajectories.TypeExecution, 0, syscall.ENOSPC, trajectories.Environment, "HostDiskFull"},
		"while calls are not run": {trajectories.TypeMessage, 3, errors.New("no room"), trajectories.Internal, "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			rec := &testRecorder{fail: func(typ trajectories.Type) error {
				if typ == tt.typ {
					n++
				}
				if n > tt.after {
					return fmt.Errorf("append: %w", tt.err)
				}
				return nil
			}}
			out := run(t.Context(), t, toolsConfig(), &scriptedModel{replies: []model.Reply{toolReply("echo a", "echo b")}}, rec)
			if out.Class != tt.class || out.ExitStatus != tt.status || !strings.Contains(out.Error, tt.err.Error()) || (out.Hint == "") != (tt.class == trajectories.Internal) {
				t.Errorf("%s %s: %s, hint %q", out.Class, out.ExitStatus, out.Error, out.Hint)
			}
		})
	}
}

// The journal keeps as much of an output as configured, and the model is shown
// the same.
func TestJournalOutput(t *testing.T) {
	tests := map[string]struct {
		limit, observed int
		command         string
		output          string // start and end, if truncated
		truncated       bool
	}{
		"all of it":                {0, 10000, "seq 100", "", false},
		"as much as there is":      {292, 10000, "seq 100", "", false},
		"a beginning and an end":   {20, 10000, "seq 100", "1\n2\n3\n4\n5\n98\n99\n100\n", true},
		"an odd number":            {5, 10000, "seq 100", "1\n00\n", true},
		"bytes that are not text":  {3, 10000, `printf '\xff\xfe\xfd\xfc'`, "\xff\xfd\xfc", true},
		"of what the sandbox kept": {4, 100, "head -c 300000 /dev/zero | tr '\\0' x; echo y", "xxy\n", true},
		"more than an observation": {290_000, 100, "head -c 280000 /dev/zero | tr '\\0' x", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.JournalOutput = tt.limit
			cfg.Observation = agent.ObservationConfig{MaxChars: tt.observed, HeadChars: 10, TailChars: 10}
			rec := &testRecorder{}
			s := replies(bash(tt.command), bash(submit))
			run(t.Context(), t, cfg, s, rec)
			var x trajectories.Execution
			for _, r := range rec.records {
				if r.Type == trajectories.TypeExecution {
					require.NoError(t, json.Unmarshal(r.Data, &x))
					break
				}
			}
			if x.Truncated != tt.truncated || tt.truncated && string(x.Output) != tt.output || !tt.truncated && int64(len(x.Output)) != x.Bytes {
				t.Errorf("kept %d bytes of %d, %q, truncated %v", len(x.Output), x.Bytes, x.Output[:min(len(x.Output), 40)], x.Truncated)
			}
			if tt.truncated && x.Head != tt.limit/2 {
				t.Errorf("the beginning has %d bytes, want %d", x.Head, tt.limit/2)
			}
			if shown := s.prompts[1][3].Content; tt.observed == 10000 && strings.HasPrefix(tt.command, "seq") && !strings.Contains(shown, "\n50\n") {
				t.Errorf("the model was shown %q", shown)
			}
		})
	}
}
