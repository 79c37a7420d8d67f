package subagents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a sandbox in which each line "mini-tool [...]" of a script is a request; all
// run concurrently, with the input after "<". bash runs other scripts.
type box struct {
	env.Environment
	timeout time.Duration // of commands that ask
}

func (b box) Info() env.Info {
	info := b.Environment.Info()
	info.Tools = true
	return info
}

func (b box) Close(context.Context) error { return nil }

func (b box) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if !strings.HasPrefix(c.Script, "mini-tool ") || c.Tools == nil {
		return b.Environment.Execute(ctx, c)
	}
	within := ctx
	if b.timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
	}
	lines := strings.Split(c.Script, "\n")
	answers := make([]env.ToolResponse, len(lines))
	var all sync.WaitGroup
	for i, line := range lines {
		line, input, _ := strings.Cut(strings.TrimPrefix(line, "mini-tool "), " <<< ")
		var args []string
		if err := json.Unmarshal([]byte(line), &args); err != nil {
			return env.Result{}, err
		}
		all.Go(func() {
			answers[i] = c.Tools.Handle(within, env.ToolRequest{
				Args: args, Dir: b.Environment.Info().Dir, Nested: b, Stdin: []byte(strings.ReplaceAll(input, "\\n", "\n")),
			})
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return env.Result{ExitCode: -1}, context.Cause(ctx)
	}
	var res env.Result
	for _, a := range answers {
		res.Output = slices.Concat(res.Output, a.Stdout, a.Stderr)
		res.ExitCode = max(res.ExitCode, a.ExitCode)
	}
	if within.Err() != nil {
		res.TimedOut, res.ExitCode = true, -1
	}
	return res, nil
}

func asks(args ...string) string {
	list, _ := json.Marshal(args)
	return "mini-tool " + string(list)
}

// brain is a model with a separate script for each task.
type brain struct {
	mu      sync.Mutex
	replies map[string][]string // by a word of the task
	seen    map[string][]string // what came last, before each reply
	fail    map[string]error
	wait    map[string]bool // until the end of ctx
}

func (b *brain) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for word, replies := range b.replies {
		if !strings.Contains(messages[1].Content, word) {
			continue
		}
		n := len(b.seen[word])
		b.seen[word] = append(b.seen[word], messages[len(messages)-1].Content)
		if err := b.fail[word]; err != nil {
			return model.Reply{}, err
		}
		if b.wait[word] {
			b.mu.Unlock()
			<-ctx.Done()
			b.mu.Lock()
			return model.Reply{}, context.Cause(ctx)
		}
		if n >= len(replies) {
			return model.Reply{}, &model.Error{Status: model.BadRequest, Err: errors.New("nothing is left to say")}
		}
		return model.Reply{
			Message: model.Message{Role: model.Assistant, Content: replies[n]}, FinishReason: model.FinishStop, Tries: 1,
			Usage: model.Usage{Prompt: 10, Completion: 1}, Cost: 0.25,
		}, nil
	}
	return model.Reply{}, errors.New("nobody has such a task")
}

func bash(command string) string { return "thought\n```bash\n" + command + "\n```" }

func submits(report string) string {
	return bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat <<'E'\n" + report + "\nE")
}

var end = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")

func config() agent.Config {
	return agent.Config{
		SystemTemplate: "at {{.cwd}}", InstanceTemplate: "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}", FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors: 3, Timeout: 20 * time.Second,
	}
}

// world is an attempt with a subagent pool, and its results.
type world struct {
	t       *testing.T
	cfg     agent.Config
	family  subagents.Options
	session agent.Session
	timeout time.Duration
	brain   *brain
	dir     string

	out    trajectories.Outcome
	memory *agent.MemoryRecorder
}

func newWorld(t *testing.T, replies map[string][]string) *world {
	t.Helper()
	w := &world{t: t, cfg: config(), dir: t.TempDir(), brain: &brain{replies: replies, seen: map[string][]string{}}}
	w.family = subagents.Options{
		Config: subagents.Config{Enabled: true},
		Definition: func(profile string) (subagents.Definition, error) {
			if profile != "" {
				return subagents.Definition{}, errors.New("there is no such profile")
			}
			a, err := agent.New(subagents.ChildConfig(w.cfg, w.family.Config))
			return subagents.Definition{Agent: a}, err
		},
		Journals: subagents.JournalDir{Dir: w.dir, Journal: "journal.jsonl", Name: "children"},
	}
	return w
}

func (w *world) run(ctx context.Context) {
	w.t.Helper()
	a, err := agent.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	inner, err := local.New(ctx, local.Config{Dir: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = inner.Close(context.WithoutCancel(ctx)) })
	list := subagents.New(w.family).Tools()
	for _, name := range []string{"note", "search"} {
		list = append(list, plain(name))
	}
	registry, err := tools.New(tools.Config{Tools: list})
	if err != nil {
		w.t.Fatal(err)
	}
	w.memory = agent.NewMemoryRecorder()
	s := w.session
	s.Model, s.Environment, s.Recorder, s.Tools, s.Task = w.brain, box{inner, w.timeout}, w.memory, registry, agent.Task{Text: "PARENT"}
	w.out = a.Run(ctx, s)
}

// plain is a tool that prints its name.
type plain string

func (p plain) Spec() tools.Spec {
	return tools.Spec{Name: string(p), Usage: string(p), Description: "says so"}
}

func (p plain) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Output: string(p) + "\n"}, nil
}

// told returns what the parent saw after its n-th reply, from 0.
func (w *world) told(who string, n int) string {
	w.t.Helper()
	if seen := w.brain.seen[who]; n+1 < len(seen) {
		return seen[n+1]
	}
	w.t.Fatalf("%s was asked %d times", who, len(w.brain.seen[who]))
	return ""
}

// child returns the journal of a child.
func (w *world) child(n string) *trajectories.Transcript {
	w.t.Helper()
	tr, err := trajectories.BuildTranscript(trajectories.Read(filepath.Join(w.dir, "children", n, "journal.jsonl")))
	if err != nil {
		w.t.Fatal(err)
	}
	if tr.Outcome == nil {
		w.t.Fatalf("child %s has no outcome", n)
	}
	return tr
}

// calls returns the records of a tool's calls.
func (w *world) calls(name string) []trajectories.ToolCall {
	var all []trajectories.ToolCall
	for r, err := range w.memory.Records() {
		var c trajectories.ToolCall
		if err == nil && r.Type == trajectories.TypeTool && json.Unmarshal(r.Data, &c) == nil && c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

func TestChildReports(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash("echo data > f.txt"), bash(asks("delegate", "--pass", "f.txt", "--pass", "a text", "CHILD work")), end},
		"CHILD":  {bash("cat f.txt; echo more >> f.txt"), submits("all is well\n\nsecond line")},
	})
	w.run(t.Context())
	contains(t, w.told("PARENT", 1), "[0] all is well\n\nsecond line\n")
	contains(t, w.brain.seen["CHILD"][0], "CHILD work", "<passed file=\"f.txt\">\ndata\n</passed>", "<passed>\na text\n</passed>")
	contains(t, w.told("CHILD", 0), "[0] data")
	if w.out.Class != trajectories.Submitted || w.out.Steps != 5 || w.out.ChildSteps != 2 || w.out.Cost != 1.25 || w.out.Usage.Prompt != 50 {
		t.Errorf("outcome: %+v", w.out)
	}
	c := w.child("1")
	if c.Diff != nil || c.Outcome.ExitStatus != "Submitted" || c.Outcome.Steps != 2 {
		t.Errorf("child: %+v %+v", c.Diff, c.Outcome)
	}
	if p := c.Header.Parent; p == nil || p.Child != 1 || p.Step != 2 || p.Depth != 1 || p.Journal != "../../journal.jsonl" || p.Task != "CHILD work" {
		t.Errorf("header: %+v", p)
	}
	made := w.calls("delegate")[0].Children()
	if len(made) != 1 || made[0].Journal != "children/1/journal.jsonl" || len(made[0].SHA256) != 64 || made[0].Steps != 2 || made[0].Cost != 0.5 {
		t.Errorf("details: %+v", made)
	}
}

func TestJSON(t *testing.T) {
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	tests := []struct {
		name    string
		replies []string
		want    string
	}{
		{"directly", []string{submits(`{"n": 1}`)}, "[0] {\"n\":1}\n"},
		{"in a fence", []string{"Here {it} is:\n```json\n{\"n\": 2}\n```\nand not {\"n\":\"9\"}"}, "[0] {\"n\":2}\n"},
		{"by braces", []string{submits(`It {is} {"m":"}"} this: {"n": 3} as you see`)}, "[0] {\"n\":3}\n"},
		{"again", []string{submits(`{"n": "x"}`), submits(`{"n": 4}`)}, "[0] {\"n\":4}\n"},
		{"never", []string{submits(`{"n": "x"}`), submits("sorry")}, "[1] sorry\nmini-tool: delegate: the child's report is not what was asked for, also when it was asked again: there is no JSON in it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "--json", schema, "CHILD")), end}, "CHILD": tt.replies})
			w.run(t.Context())
			contains(t, w.told("PARENT", 0), tt.want)
			contains(t, w.brain.seen["CHILD"][0], schema)
			if len(tt.replies) > 1 {
				contains(t, w.told("CHILD", 0), "The report does not serve", "does not satisfy the schema", schema)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"delegate"}, "the task is missing"},
		{[]string{"delegate", "--skil", "x", "y"}, "--skill"},
		{[]string{"delegate", "--skill", "x", "y"}, "there are no skills here"},
		{[]string{"delegate", "--profile", "x", "y"}, "there is no such profile"},
		{[]string{"delegate", "--json", "{", "y"}, "the schema is none: unexpected end"},
		{[]string{"delegate", "--json", "nofile", "y"}, "neither a schema nor a file"},
		{[]string{"delegate", "--json", `{"$ref":"http://127.0.0.1/x"}`, "y"}, "the schema refers to"},
		{[]string{"delegate", "--json", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, "y"}, "refers to"},
		{[]string{"delegate", "--json", `{"type":5}`, "y"}, "the schema"},
		{[]string{"delegate", "--pass", strings.Repeat("x", 70<<10), "y"}, "65536 bytes"},
		{[]string{"board"}, "get, set or list"},
		{[]string{"board", "set", "a b", "c"}, "is no key"},
		{[]string{"chain", "nofile"}, "there is no file"},
		{[]string{"chain"}, "one file is needed"},
	}
	for _, tt := range tests {
		w := newWorld(t, map[string][]string{"PARENT": {bash(asks(tt.args...)), end}})
		w.run(t.Context())
		contains(t, w.told("PARENT", 0), "[2] ", tt.want)
		if list, err := os.ReadDir(filepath.Join(w.dir, "children")); err == nil {
			t.Errorf("%.60q made %d children", tt.args, len(list))
		}
	}
}

func TestLimits(t *testing.T) {
	busy := []string{bash("true"), bash("true"), bash("true"), bash("true"), bash("true"), bash("true")}
	tests := []struct {
		name   string
		change func(*world)
		told   string // "" where the parent is told nothing any more
		status string // the parent's
		child  string // and the child's
		steps  int    // all together
	}{
		{
			"the child's own", func(w *world) { w.family.Config.StepLimit = 2 },
			"[1] thought\n```bash\ntrue\n```\nmini-tool: delegate: the child ended without a report after 2 steps: LimitsExceeded", "Submitted", "LimitsExceeded", 4,
		},
		{"the child's cost", func(w *world) { w.family.Config.CostLimit = 0.5 }, "[1] ", "Submitted", "LimitsExceeded", 4},
		{"what the parent has left of steps", func(w *world) { w.cfg.StepLimit = 4 }, "", "LimitsExceeded", "LimitsExceeded", 4},
		{"what the parent has left of money", func(w *world) { w.cfg.CostLimit = 1 }, "", "LimitsExceeded", "LimitsExceeded", 4},
		{"the run's", func(w *world) {
			n := 0
			w.session.ReserveCall = func() error {
				if n++; n > 3 {
					return agent.ErrBudgetExhausted
				}
				return nil
			}
		}, "", "BudgetExhausted", "BudgetExhausted", 3},
		{"the provider", func(w *world) {
			w.brain.fail = map[string]error{"CHILD": &model.Error{Status: model.RateLimited, Err: errors.New("later")}}
		}, "[1] mini-tool: delegate: the child ended without a report after 1 step: RateLimited", "Submitted", "RateLimited", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": busy})
			tt.change(w)
			w.run(t.Context())
			if tt.told != "" {
				contains(t, w.told("PARENT", 0), tt.told)
			}
			if w.out.ExitStatus != tt.status || w.out.Steps != tt.steps {
				t.Errorf("%s after %d steps", w.out.ExitStatus, w.out.Steps)
			}
			if c := w.child("1").Outcome; c.ExitStatus != tt.child {
				t.Errorf("child: %s after %d steps", c.ExitStatus, c.Steps)
			}
		})
	}
}

func TestParallelChildrenShareWhatIsLeft(t *testing.T) {
	var many []string
	for range 20 {
		many = append(many, bash("true"))
	}
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("delegate", "ONE") + "\n" + asks("delegate", "TWO") + "\n" + asks("delegate", "THREE")), end}, "ONE": many, "TWO": many, "THREE": many,
	})
	w.cfg.StepLimit = 10
	w.run(t.Context())
	sum := 1
	for _, n := range []string{"1", "2", "3"} {
		sum += w.child(n).Outcome.Steps
	}
	if w.out.Steps != 10 || sum != 10 || w.out.ExitStatus != "LimitsExceeded" {
		t.Errorf("%d steps, %d by the journals: %s", w.out.Steps, sum, w.out.ExitStatus)
	}
}

func TestDepthAndNumber(t *testing.T) {
	replies := map[string][]string{
		"PARENT": {bash(asks("delegate", "CHILD")), bash(asks("delegate", "LATER")), bash(asks("delegate", "LAST")), end},
		"CHILD":  {bash(asks("delegate", "GRANDSON")), submits("done")}, "GRANDSON": {bash(asks("delegate", "x")), submits("deep")}, "LATER": {submits("late")},
	}
	w := newWorld(t, replies)
	w.family.Config.Depth, w.family.Config.MaxChildren = 2, 3
	w.run(t.Context())
	contains(t, w.told("CHILD", 0), "[0] deep")
	contains(t, w.told("GRANDSON", 0), "[2] ", "there is no tool")
	contains(t, w.told("PARENT", 0), "[0] done")
	contains(t, w.told("PARENT", 1), "[0] late")
	contains(t, w.told("PARENT", 2), "[1] mini-tool: delegate: there were 3 children, and no more are allowed (agents.max)")
	if p := w.child("2").Header.Parent; p.ParentChild != 1 || p.Depth != 2 {
		t.Errorf("grandchild: %+v", p)
	}
	if c := w.child("1"); c.Outcome.Steps != 4 || c.Outcome.ChildSteps != 2 || w.out.Steps != 9 || w.out.ChildSteps != 5 {
		t.Errorf("child: %+v, all: %+v", c.Outcome, w.out)
	}
	w = newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {bash(asks("delegate", "x")), submits("done")}})
	w.run(t.Context())
	contains(t, w.told("CHILD", 0), "[2] ", "there is no tool")
}

func TestProfile(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("delegate", "--profile", "keeper", "CHILD")), end},
		"CHILD":  {bash(asks("note")), bash(asks("search")), bash("touch x"), bash("echo other"), submits("done")},
	})
	own := w.family.Definition
	w.family.Definition = func(profile string) (subagents.Definition, error) {
		if profile == "" {
			return own("")
		}
		cfg := config()
		cfg.InstanceTemplate = "Keep it: {{.task}}"
		a, err := agent.New(subagents.ProfileConfig(cfg, w.cfg, w.family.Config))
		return subagents.Definition{
			Agent: a, AllowsTool: func(name string) bool { return name == "note" }, Approver: denies("touch x"),
		}, err
	}
	w.session.Approver = denies("echo other")
	w.run(t.Context())
	contains(t, w.brain.seen["CHILD"][0], "Keep it: CHILD")
	contains(t, w.told("CHILD", 0), "[0] note")
	contains(t, w.told("CHILD", 1), "[2] ", "there is no tool")
	contains(t, w.told("CHILD", 2), "not allowed here")
	contains(t, w.told("CHILD", 3), "not allowed here")
	contains(t, w.told("PARENT", 0), "[0] done")
	system := ""
	for _, e := range w.child("1").Entries[:1] {
		system = e.Content
	}
	if strings.Count(system, "- mini-tool ") != 1 || !strings.Contains(system, "- mini-tool note: ") {
		t.Errorf("system prompt:\n%s", system)
	}
}

func TestProfileKeepsItsPrompts(t *testing.T) {
	parent := config()
	plain := subagents.ProfileConfig(parent, parent, subagents.Config{StepLimit: 5})
	if child := subagents.ChildConfig(parent, subagents.Config{StepLimit: 5}); plain.SystemTemplate != child.SystemTemplate || plain.InstanceTemplate != child.InstanceTemplate {
		t.Errorf("a profile without prompts has others than a child: %q %q", plain.SystemTemplate, plain.InstanceTemplate)
	}
	profile := parent
	profile.SystemTemplate, profile.StepLimit = "own system", 3
	got := subagents.ProfileConfig(profile, parent, subagents.Config{StepLimit: 5})
	if got.SystemTemplate != "own system" || got.InstanceTemplate != plain.InstanceTemplate || got.StepLimit != 3 || plain.StepLimit != 5 {
		t.Errorf("%+v", got)
	}
	profile.InstanceTemplate = "own instance"
	got = subagents.ProfileConfig(profile, parent, subagents.Config{})
	if got.SystemTemplate != "own system" || got.InstanceTemplate != "own instance" || got.Autosubmit || got.Submission != agent.SubmissionText {
		t.Errorf("%+v", got)
	}
}

// denies is a command that may not run.
type denies string

func (d denies) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	if p.Command == string(d) {
		return agent.Decision{Action: agent.Deny, By: "rule"}, nil
	}
	return agent.Decision{Action: agent.Allow}, nil
}

func TestSkillRestrictsTools(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("delegate", "--skill", "bisect", "CHILD")), end},
		"CHILD":  {bash(asks("note")), bash(asks("search")), bash(asks("board", "list")), submits("done")},
	})
	w.family.Skill = func(string) (subagents.Skill, error) {
		return subagents.Skill{Body: "Halve it.", Restricted: true, AllowedTools: []string{"note"}}, nil
	}
	w.run(t.Context())
	contains(t, w.brain.seen["CHILD"][0], "<skill name=\"bisect\">\nHalve it.\n</skill>", "mini-tool note")
	contains(t, w.told("CHILD", 0), "[0] note")
	contains(t, w.told("CHILD", 1), "[2] ")
	contains(t, w.told("CHILD", 2), "[2] ")
}

func TestSkillRestrictsCommands(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("delegate", "--skill", "look", "CHILD")), end},
		"CHILD": {
			bash("touch x"), bash("ls -a | wc -l"), bash("ls -a; touch x"), bash("cat > x <<'E'\nx\nE"), bash("ls $(touch x)"), bash("$X x"),
			bash(asks("note")), bash("MINI_TOOL_LOCAL=write mini-tool write x y"), bash("export MINI_TOOL_LOCAL=write; mini-tool write x y"),
			bash("/tmp/mini-tool note"), bash("./cat x"), bash("/tmp/ls"), submits("done"),
		},
	})
	w.family.Skill = func(string) (subagents.Skill, error) {
		return subagents.Skill{Body: "Look.", Restricted: true, AllowedTools: []string{"note"}, Bash: true, Commands: []string{"ls:*", "wc *"}}, nil
	}
	w.run(t.Context())
	for i, want := range []string{
		"does not allow touch x", "[0] 2", "does not allow touch", "does not allow", "does not allow touch", "cannot be told", "[0] note",
		"it sets MINI_TOOL_LOCAL", "it sets MINI_TOOL_LOCAL", "does not allow mini-tool note", "does not allow cat x", "does not allow ls",
	} {
		contains(t, w.told("CHILD", i), want)
	}
	contains(t, w.told("PARENT", 0), "[0] done")
}

func TestEnds(t *testing.T) {
	t.Run("the command's timeout", func(t *testing.T) {
		w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {bash("sleep 600")}})
		w.timeout = time.Second
		w.run(t.Context())
		if c := w.child("1").Outcome; c.Class != trajectories.Interrupted || w.out.ExitStatus != "Submitted" {
			t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
		}
	})
	t.Run("the parent's time", func(t *testing.T) {
		w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {""}})
		w.cfg.WallTimeLimit = 1
		w.brain.wait = map[string]bool{"CHILD": true}
		w.run(t.Context())
		if c := w.child("1").Outcome; c.ExitStatus != "TimeExceeded" || w.out.ExitStatus != "TimeExceeded" {
			t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
		}
	})
	t.Run("an interruption", func(t *testing.T) {
		w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {bash("touch started; sleep 600")}})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		w.session.Approver = supervisor(func(p agent.ApprovalRequest) {
			if strings.Contains(p.Command, "sleep") {
				cancel(agent.ErrInterrupted)
			}
		})
		w.run(ctx)
		if c := w.child("1").Outcome; c.ExitStatus != "Interrupted" || w.out.ExitStatus != "Interrupted" {
			t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
		}
	})
	t.Run("a person's interruption of the command", func(t *testing.T) {
		w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {bash("touch started; sleep 600")}})
		w.session.Inbox = agent.NewInbox()
		w.session.Approver = supervisor(func(p agent.ApprovalRequest) {
			if strings.Contains(p.Command, "sleep") {
				w.session.Inbox.Interrupt(func(context.Context) (string, error) { return "leave it", nil })
			}
		})
		w.run(t.Context())
		if c := w.child("1").Outcome; c.ExitStatus != "Interrupted" || w.out.ExitStatus != "Submitted" {
			t.Errorf("child %s: %s, parent %s: %s", c.ExitStatus, c.Error, w.out.ExitStatus, w.out.Error)
		}
	})
}

// A user who takes over ends the child, not its parent. A nested child is approved
// after its parent's question.
func TestSupervisorIsToldOfChildren(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("delegate", "CHILD")), end},
		"CHILD":  {bash(asks("delegate", "GRANDSON")), bash("echo stop"), bash("echo never")}, "GRANDSON": {bash("echo deep"), "deep"},
	})
	w.family.Config.Depth = 2
	var told []string
	w.session.Approver = decides(func(p agent.ApprovalRequest) (agent.Decision, error) {
		told = append(told, fmt.Sprint(p.Child))
		if p.Command == "echo stop" {
			return agent.Decision{}, agent.ErrInterrupted
		}
		return agent.Decision{Action: agent.Allow}, nil
	})
	w.run(t.Context())
	contains(t, w.told("CHILD", 0), "[0] deep")
	contains(t, w.told("PARENT", 0), "the child ended without a report after 4 steps: Interrupted")
	if got := strings.Join(told, " "); got != "false true true true false" {
		t.Errorf("children: %s", got)
	}
	if c := w.child("1").Outcome; c.ExitStatus != "Interrupted" || w.out.ExitStatus != "Submitted" {
		t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
	}
}

// Limits apply to the sum of the steps of parent and children.
func TestLimitIsNamed(t *testing.T) {
	w := newWorld(t, map[string][]string{"PARENT": {bash(asks("delegate", "CHILD")), end}, "CHILD": {bash("true"), bash("true"), bash("true")}})
	w.cfg.StepLimit, w.cfg.CostLimit = 3, 10
	w.session.Events = events.NewBus()
	all := w.session.Events.Subscribe(0)
	w.run(t.Context())
	w.session.Events.Close()
	for {
		e, err := all.Next(t.Context())
		if err != nil {
			t.Fatalf("no limit was told of: %v", err)
		}
		if l, ok := e.Event.(events.LimitReached); ok {
			if l.Limit != events.LimitSteps {
				t.Errorf("the limit is %v", l.Limit)
			}
			return
		}
	}
}

type decides func(agent.ApprovalRequest) (agent.Decision, error)

func (s decides) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	return s(p)
}

type supervisor func(agent.ApprovalRequest)

func (s supervisor) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	s(p)
	return agent.Decision{Action: agent.Allow}, nil
}

func TestChain(t *testing.T) {
	const file = `
- name: find
  task: FIND it
- task: "MEND what was found: {{.previous}}"
  json: {type: object}
- name: tell
  task: "TELL of {{.results.find}} and {{ .results.2 }}"
`
	w := newWorld(t, map[string][]string{
		"PARENT": {bash("cat > c.yaml <<'E'" + file + "E"), bash(asks("chain", "c.yaml")), end},
		"FIND":   {submits("line 7 {{.previous}}")}, "MEND": {submits(`{"ok":true}`)}, "TELL": {"told"},
	})
	w.run(t.Context())
	contains(t, w.told("PARENT", 1), "[0] == find ==\nline 7 {{.previous}}\n== 2 ==\n{\"ok\":true}\n== tell ==\ntold\n")
	contains(t, w.brain.seen["MEND"][0], "MEND what was found: line 7 {{.previous}}")
	contains(t, w.brain.seen["TELL"][0], "TELL of line 7 {{.previous}} and {\"ok\":true}")
	if made := w.calls("chain")[0].Children(); len(made) != 3 || made[1].Name != "2" {
		t.Errorf("details: %+v", made)
	}
	w = newWorld(t, map[string][]string{
		"PARENT": {asksWith("- {name: a, task: FIND}\n- {name: b, task: MEND}\n- {name: c, task: TELL}\n"), end},
		"FIND":   {submits("found")}, "MEND": {}, "TELL": {"told"},
	})
	w.run(t.Context())
	contains(t, w.told("PARENT", 0), "[1] == a ==\nfound\nmini-tool: chain: step \"b\" (2 of 3): the child ended without a report after 1 step: BadRequest")
	if n := len(w.brain.seen["TELL"]); n != 0 {
		t.Errorf("the step after was asked %d times", n)
	}
	for text, want := range map[string]string{
		"- {task: 'FIND {{.previous}}'}":                 "{{.previous}} is no report",
		"- {task: FIND}\n- {task: 'x {{.results.b}}'}":   "{{.results.b}} is no report",
		"- {task: FIND}\n- {tsk: x}":                     "line 2: field tsk not found in a step",
		"- {task: FIND, whatever: 1}":                    "line 1: field whatever not found in a step",
		"task: FIND":                                     "line 1: cannot unmarshal !!map into a list of steps",
		"- FIND\n- x":                                    "line 1: cannot unmarshal !!str `FIND` into a step",
		"- {task: [FIND]}":                               "line 1: cannot unmarshal !!seq into a text",
		"- {task: FIND, pass: {a: b}}":                   "line 1: cannot unmarshal !!map into a list of texts",
		"- {task: FIND":                                  "line 1: did not find",
		"- {task: FIND}\n- {task: 'x {{.previous'}":      "a {{ has no }}",
		"- {task: FIND}\n- {task: 'x {{ {{.previous}}'}": "a {{ has no }}",
		"- {task: FIND}\n- {task: x, pass: ['{{.prev']}": "a {{ has no }}",
		"- {task: FIND, name: a}\n- {task: x, name: a}":  "two steps",
		"- {task: FIND}\n- {name: b}":                    "the task is missing",
		"- {task: FIND}\n- {task: x, json: '{'}":         "the schema is none: unexpected end",
		"- {task: FIND}\n- {task: x, profile: none}":     "there is no such profile",
		"x": "no list of steps", "[]": "no steps",
	} {
		w := newWorld(t, map[string][]string{"PARENT": {asksWith(text), end}, "FIND": {submits("found")}})
		w.run(t.Context())
		contains(t, w.told("PARENT", 0), "[2] ", want)
		if n := len(w.brain.seen["FIND"]); n != 0 {
			t.Errorf("%q: a step was done", text)
		}
	}
}

// The size of repeated reports is checked before they are inserted.
func TestChainIsMeasured(t *testing.T) {
	many := strings.Repeat("{{.previous}}", 1200)
	for step, want := range map[string]string{
		"{task: MEND, pass: ['" + many + "']}": "step \"b\" (2 of 2): what is passed: it has more than 196608 bytes with the reports in it",
		"{task: 'MEND " + many + "'}":          "step \"b\" (2 of 2): the task: it has more than 163840 bytes with the reports in it",
	} {
		w := newWorld(t, map[string][]string{
			"PARENT": {asksWith("- {name: a, task: FIND}\n- {name: b, " + step[1:]), end},
			"FIND":   {strings.Repeat("x", 60<<10)}, "MEND": {"mended"},
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.run(t.Context())
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("it took %d MB", took>>20)
		}
		contains(t, w.told("PARENT", 0), want)
		if n := len(w.brain.seen["MEND"]); n != 0 {
			t.Errorf("the step was done")
		}
	}
}

func asksWith(input string) string {
	return bash(asks("chain", "-") + " <<< " + strings.ReplaceAll(input, "\n", `\n`))
}

func TestBoard(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {
			bash(asks("board", "set", "plan", "first this")), bash(asks("delegate", "CHILD")),
			bash(asks("board", "get", "plan")), bash(asks("board", "get")), bash(asks("board", "get", "nothing")), end,
		},
		"CHILD": {bash(asks("board", "get", "plan")), bash(asks("board", "set", "plan", "then that")), "done"},
	})
	w.run(t.Context())
	contains(t, w.told("CHILD", 0), "[0] first this\n")
	contains(t, w.told("PARENT", 2), "[0] then that\n")
	contains(t, w.told("PARENT", 3), "[0] plan: then that\n")
	contains(t, w.told("PARENT", 4), "[1] mini-tool: board: there is no \"nothing\" on the board")
	if d := string(w.calls("board")[0].Details); d != `{"board":{"key":"plan","value":"first this"}}` {
		t.Errorf("details: %s", d)
	}
}

func TestBoardIsRecalled(t *testing.T) {
	w := newWorld(t, map[string][]string{
		"PARENT": {bash(asks("board", "set", "a", "one")), bash(asks("board", "set", "b", "two")), bash(asks("delegate", "CHILD")), end},
		"CHILD":  {bash(asks("board", "set", "b", "three")), "done"},
	})
	w.run(t.Context())
	past, err := agent.ReadResumeState(w.memory.Records())
	if err != nil {
		t.Fatal(err)
	}
	if !past.UsedSubagents || past.Children.Steps != 2 || past.Total().Steps != 6 {
		t.Errorf("past: %v, %+v, %+v", past.UsedSubagents, past.Children, past.Total())
	}
	w.brain.replies["PARENT"] = append(w.brain.replies["PARENT"], bash(asks("board", "get")), end)
	past.Submitted, past.Entries, past.Executions = false, past.Entries[:len(past.Entries)-1], nil
	w.session.Resume = past
	w.run(t.Context())
	contains(t, w.told("PARENT", 4), "[0] a: one\nb: three\n")
	if w.out.ChildSteps != 2 || w.out.Steps != 8 {
		t.Errorf("outcome: %+v", w.out)
	}
}

func TestBoardIsBounded(t *testing.T) {
	f := subagents.New(subagents.Options{})
	b := f.Tools()[2]
	set := func(key, value string) error {
		_, err := b.Call(t.Context(), tools.Call{Args: []string{"set", key, value}})
		return err
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if err := set("k"+string(rune('0'+i/10))+string(rune('0'+i%10)), "v"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := set("one-more", "v"); err == nil || !strings.Contains(err.Error(), "full") {
		t.Error(err)
	}
	for i := range 16 {
		err := set("k0"+string(rune('0'+i%10)), strings.Repeat("x", 16<<10))
		if err != nil && i < 10 {
			t.Error(err)
		}
	}
	if err := set("k11", strings.Repeat("x", 17<<10)); err == nil {
		t.Error("a value that is too long was taken")
	}
	res, err := b.Call(t.Context(), tools.Call{Args: []string{"list"}})
	if err != nil || bytes.Count([]byte(res.Output), []byte("\n")) != 100 {
		t.Errorf("%d bytes, %v", len(res.Output), err)
	}
}
