package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a model that says what it is told to.
type script struct {
	mu      sync.Mutex
	replies []model.Reply
	errs    map[int]error // by call, from 0
	seen    [][]model.Message
}

func (s *script) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.seen)
	s.seen = append(s.seen, append([]model.Message(nil), messages...))
	if err := s.errs[n]; err != nil {
		return model.Reply{}, err
	}
	if n >= len(s.replies) {
		<-ctx.Done() // a provider that never answers
		return model.Reply{}, ctx.Err()
	}
	return s.replies[n], nil
}

func says(contents ...string) *script {
	s := &script{}
	for _, c := range contents {
		s.replies = append(s.replies, model.Reply{
			Message: model.Message{Role: model.Assistant, Content: c}, Finish: model.FinishStop,
			Cost: 0.25, Usage: model.Usage{Prompt: 10, Completion: 2}, Tries: 1,
		})
	}
	return s
}

func bash(command string) string { return "thought\n```bash\n" + command + "\n```" }

const submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

// memory is a recorder that keeps records.
type memory struct {
	mu      sync.Mutex
	records []trajectories.Record
	fail    func(trajectories.Type) error
}

func (m *memory) Append(t trajectories.Type, data any) (trajectories.Record, error) {
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

func (m *memory) types() string {
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

// repository is a sandbox in a fresh repository with one file.
func repository(t *testing.T) env.Environment {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec",
		`git init -q . && echo one > a.txt && git add . && git -c user.name=a -c user.email=a@b commit -qm base`)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	box, err := local.New(t.Context(), local.Config{Dir: dir, Helper: childtest.Program(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return box
}

func run(ctx context.Context, t *testing.T, cfg agent.Config, s *script, rec agent.Recorder) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a.Run(ctx, agent.Session{Model: s, Environment: repository(t), Recorder: rec, Task: agent.Task{Text: "task"}})
}

func TestHowAttemptsEnd(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := []struct {
		name       string
		change     func(*agent.Config)
		script     *script
		class      trajectories.Class
		status     string
		steps      int
		submission string // must be in it; "" for none at all
		partial    string // likewise
		auto       bool
	}{
		{
			name: "submitted", script: says(edit, bash(submit+" && git diff")),
			class: trajectories.Submitted, status: "Submitted", steps: 2, submission: "+two",
		},
		{
			name: "submitted nothing", script: says(bash(submit)),
			class: trajectories.Submitted, status: "Submitted", steps: 1,
		},
		{
			name: "steps", change: func(c *agent.Config) { c.StepLimit = 1 }, script: says(edit),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 1, submission: "+two", auto: true,
		},
		{
			name: "cost", change: func(c *agent.Config) { c.CostLimit = 0.5 }, script: says(edit, bash("true")),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "no autosubmit", change: func(c *agent.Config) { c.StepLimit, c.Autosubmit = 1, false }, script: says(edit),
			class: trajectories.Limit, status: "LimitsExceeded", steps: 1, partial: "+two",
		},
		{
			name: "wall time, while the model thinks", change: func(c *agent.Config) { c.WallTimeLimit = 1 }, script: says(edit),
			class: trajectories.Limit, status: "TimeExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "wall time, in mid-command", change: func(c *agent.Config) { c.WallTimeLimit = 1 }, script: says(bash("echo two >> a.txt; sleep 600")),
			class: trajectories.Limit, status: "TimeExceeded", steps: 1, submission: "+two", auto: true,
		},
		{
			name: "format errors in a row", script: says(edit, "a", "b", "c"),
			class: trajectories.Limit, status: "RepeatedFormatError", steps: 4, submission: "+two", auto: true,
		},
		{
			name: "format errors that are not in a row", script: says("a", "b", edit, "c", bash("false"), "d", bash(submit)),
			class: trajectories.Submitted, status: "Submitted", steps: 7,
		},
		{
			name: "the provider", script: &script{replies: says(edit).replies, errs: map[int]error{1: &model.Error{Status: model.RateLimited}}},
			class: trajectories.Provider, status: "RateLimited", steps: 2, partial: "+two",
		},
		{
			name: "the context window", script: &script{replies: says(edit).replies, errs: map[int]error{1: &model.Error{Status: model.ContextWindowExceeded}}},
			class: trajectories.Limit, status: "ContextWindowExceeded", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "the provider refuses", script: &script{replies: says(edit).replies, errs: map[int]error{1: &model.Error{Status: model.ContentRefused}}},
			class: trajectories.Limit, status: "ContentRefused", steps: 2, submission: "+two", auto: true,
		},
		{
			name: "a defect", script: &script{replies: says(edit).replies, errs: map[int]error{1: errors.New("surprise")}},
			class: trajectories.Internal, status: "InternalError", steps: 2, partial: "+two",
		},
		{
			name: "start-up command fails", change: func(c *agent.Config) { c.StartupCommand = "echo no; exit 3" }, script: says(),
			class: trajectories.Environment, status: "SetupFailed",
		},
		{
			name: "text that is not UTF-8", script: says(bash(`printf 'caf\xe9\n' > b.txt; git add -N b.txt`), bash(submit+" && git diff")),
			class: trajectories.Submitted, status: "Submitted", steps: 2, submission: "GIT binary patch",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			if tt.change != nil {
				tt.change(&cfg)
			}
			rec := &memory{}
			out := run(t.Context(), t, cfg, tt.script, rec)
			got := []any{out.Class, out.ExitStatus, out.Steps, out.Autosubmitted}
			want := []any{tt.class, tt.status, tt.steps, tt.auto}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s %v", diff, out.Error, out.Warnings)
			}
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

func TestInterruptedAttemptKeepsItsDiff(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	rec := &memory{fail: func(typ trajectories.Type) error {
		if typ == trajectories.TypeExecution {
			cancel(agent.ErrInterrupted) // the user, right after the first command
		}
		return nil
	}}
	out := run(ctx, t, config(), says(bash("echo two >> a.txt"), bash("sleep 600")), rec)
	if out.Class != trajectories.Interrupted || out.ExitStatus != "Interrupted" || !strings.Contains(string(out.PartialPatch), "+two") {
		t.Errorf("%s %s, partial patch %q", out.Class, out.ExitStatus, out.PartialPatch)
	}
}

func TestWhatTheModelIsShown(t *testing.T) {
	cfg := config()
	cfg.Timeout = time.Second
	s := says(
		"no command at all",
		bash("a")+bash("b"),
		bash("echo out; echo err >&2; exit 3"),
		bash("echo before; sleep 600"),
		bash("printf 'x\\0y'"),
		bash("echo it has a \x00 in it"),
		bash("kill -9 $$"),
		bash("sleep 600 & echo left"),
		bash(submit),
	)
	s.replies[0].Finish = model.FinishLength
	cfg.MaxFormatErrors = 0
	rec := &memory{}
	out := run(t.Context(), t, cfg, s, rec)
	if out.Class != trajectories.Submitted {
		t.Fatalf("%+v", out)
	}
	last := s.seen[len(s.seen)-1]
	wants := []string{
		"token limit and was cut off",
		"2 commands, and exactly one is needed",
		"[3] out\nerr\n",
		"did not end within 1s and was killed, with everything it had started.>[-1] before\n",
		"[0] x\x00y",
		"was not run. ",
		"killed by signal 9.>[137] ",
		"(left: sleep (pid ",
	}
	for i, want := range wants {
		reply, observation := last[2+2*i], last[3+2*i]
		if reply.Role != model.Assistant || observation.Role != model.User || !strings.Contains(observation.Content, want) {
			t.Errorf("after reply %d, %s %q lacks %q", i, observation.Role, observation.Content, want)
		}
	}
	// A prefix once sent stays as it was, to the byte.
	for i := 1; i < len(s.seen); i++ {
		if diff := cmp.Diff(s.seen[i-1], s.seen[i][:len(s.seen[i-1])]); diff != "" {
			t.Errorf("call %d changed the history:\n%s", i, diff)
		}
	}
}

// decides is a supervisor of one function.
type decides func(agent.Proposal) agent.Decision

func (d decides) Decide(_ context.Context, p agent.Proposal) (agent.Decision, error) {
	return d(p), nil
}

func TestRejectedCommandsAreNotRun(t *testing.T) {
	a, err := agent.New(config())
	if err != nil {
		t.Fatal(err)
	}
	s := says(bash("echo two >> a.txt"), bash(submit))
	asked := 0
	out := a.Run(t.Context(), agent.Session{
		Model: s, Environment: repository(t), Recorder: &memory{}, Task: agent.Task{Text: "t"},
		Supervisor: decides(func(agent.Proposal) agent.Decision {
			if asked++; asked == 1 {
				return agent.Decision{Action: agent.Deny, By: agent.ByUser, Reason: "use sed"}
			}
			return agent.Decision{Action: agent.Allow}
		}),
	})
	if out.Class != trajectories.Submitted || asked != 2 {
		t.Fatalf("asked %d times: %+v", asked, out)
	}
	if told := s.seen[1][3].Content; !strings.Contains(told, "use sed") {
		t.Errorf("the model was told %q", told)
	}
}

func TestFullDiskOfTheHostIsNotTheAgentsFault(t *testing.T) {
	rec := &memory{}
	rec.fail = func(typ trajectories.Type) error {
		if typ == trajectories.TypeExecution {
			return fmt.Errorf("append: %w", syscall.ENOSPC)
		}
		return nil
	}
	out := run(t.Context(), t, config(), says(bash("true")), rec)
	if out.Class != trajectories.Environment || out.ExitStatus != "HostDiskFull" || out.Hint == "" {
		t.Errorf("%s %s, hint %q", out.Class, out.ExitStatus, out.Hint)
	}
}

// The journal keeps as much of an output as it is told to, and the model is shown
// what it is shown all the same.
func TestWhatTheJournalKeepsOfAnOutput(t *testing.T) {
	tests := map[string]struct {
		limit, observed int
		command         string
		output          string // its beginning and its end, where it was cut
		truncated       bool
	}{
		"all of it":                {0, 10000, "seq 100", "", false},
		"as much as there is":      {292, 10000, "seq 100", "", false},
		"a beginning and an end":   {20, 10000, "seq 100", "1\n2\n3\n4\n5\n98\n99\n100\n", true},
		"an odd number":            {5, 10000, "seq 100", "1\n00\n", true},
		"bytes that are no text":   {3, 10000, `printf '\xff\xfe\xfd\xfc'`, "\xff\xfd\xfc", true},
		"of what the sandbox kept": {4, 100, "head -c 300000 /dev/zero | tr '\\0' x; echo y", "xxy\n", true},
		"more than an observation": {290_000, 100, "head -c 280000 /dev/zero | tr '\\0' x", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.JournalOutput = tt.limit
			cfg.Observation = agent.Observation{MaxChars: tt.observed, HeadChars: 10, TailChars: 10}
			rec := &memory{}
			s := says(bash(tt.command), bash(submit))
			run(t.Context(), t, cfg, s, rec)
			var x trajectories.Execution
			for _, r := range rec.records {
				if r.Type == trajectories.TypeExecution {
					if err := json.Unmarshal(r.Data, &x); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if x.Truncated != tt.truncated || tt.truncated && string(x.Output) != tt.output || !tt.truncated && int64(len(x.Output)) != x.Bytes {
				t.Errorf("kept %d bytes of %d, %q, truncated %v", len(x.Output), x.Bytes, x.Output[:min(len(x.Output), 40)], x.Truncated)
			}
			if tt.truncated && x.Head != tt.limit/2 {
				t.Errorf("the beginning has %d bytes, want %d", x.Head, tt.limit/2)
			}
			if shown := s.seen[1][3].Content; tt.observed == 10000 && strings.HasPrefix(tt.command, "seq") && !strings.Contains(shown, "\n50\n") {
				t.Errorf("the model was shown %q", shown)
			}
		})
	}
}
