package subagents_test

import (
	"bytes"
	"cmp"
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
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toolSandbox is a sandbox in which each line of a script "mini-tool [...]" is a
// request with the arguments in JSON. All requests of a script run concurrently; the
// standard input follows "<<<". bash runs other scripts.
type toolSandbox struct {
	env.Environment
	timeout time.Duration // of commands that send requests
}

func (b toolSandbox) Info() env.Info {
	info := b.Environment.Info()
	info.Tools = true
	return info
}

func (b toolSandbox) Close(context.Context) error { return nil }

func (b toolSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if !strings.HasPrefix(c.Script, "mini-tool ") || c.Tools == nil {
		defer model.BeginPause(ctx)() // only requests and model calls count towards the time limit
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

// toolCall returns a command that calls a tool.
func toolCall(args ...string) string {
	list, _ := json.Marshal(args)
	return "mini-tool " + string(list)
}

// taskModel is a model with separate replies for each task.
type taskModel struct {
	mu      sync.Mutex
	replies map[string][]string // by a word of the task
	prompts map[string][]string // the last message before each reply
	fail    map[string]error
	blocks  map[string]bool // whether a reply waits for the end of ctx
}

func (b *taskModel) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for word, replies := range b.replies {
		if !strings.Contains(messages[1].Content, word) {
			continue
		}
		n := len(b.prompts[word])
		b.prompts[word] = append(b.prompts[word], messages[len(messages)-1].Content)
		if err := b.fail[word]; err != nil {
			return model.Reply{}, err
		}
		if b.blocks[word] {
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
	return model.Reply{}, errors.New("no such task")
}

func bash(command string) string { return "thought\n```bash\n" + command + "\n```" }

// submitReport returns a reply that submits a report.
func submitReport(report string) string {
	return bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat <<'E'\n" + report + "\nE")
}

// submit is a reply that submits an empty report.
var submit = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")

func config() agent.Config {
	return agent.Config{
		SystemTemplate: "at {{.cwd}}", InstanceTemplate: "{{.task}}",
		ObservationTemplate: "[{{.returncode}}] {{.output}}", FormatErrorTemplate: "{{.error}}",
		MaxFormatErrors: 3, Timeout: 20 * time.Second,
	}
}

// fixture is an attempt with subagents, and its results.
type fixture struct {
	t       *testing.T
	cfg     agent.Config
	options subagents.Options
	session agent.Session
	timeout time.Duration
	model   *taskModel
	dir     string

	out    trajectories.Outcome
	memory *agent.MemoryRecorder
}

func newFixture(t *testing.T, replies map[string][]string) *fixture {
	t.Helper()
	w := &fixture{t: t, cfg: config(), dir: t.TempDir(), model: &taskModel{replies: replies, prompts: map[string][]string{}}}
	w.options = subagents.Options{
		Config: subagents.Config{Enabled: true},
		Definition: func(profile string) (subagents.Definition, error) {
			if profile != "" {
				return subagents.Definition{}, errors.New("there is no such profile")
			}
			a, err := agent.New(subagents.ChildConfig(w.cfg, w.options.Config))
			return subagents.Definition{Agent: a}, err
		},
		Journals: subagents.JournalDir{Dir: w.dir, ParentJournal: "journal.jsonl", Subdir: "children"},
	}
	return w
}

func (w *fixture) run(ctx context.Context) {
	w.t.Helper()
	a, err := agent.New(w.cfg)
	require.NoError(w.t, err)
	inner, err := local.New(ctx, local.Config{Dir: w.t.TempDir()})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = inner.Close(context.WithoutCancel(ctx)) })
	list := subagents.New(w.options).Tools()
	for _, name := range []string{"note", "search"} {
		list = append(list, namedTool(name))
	}
	registry, err := tools.New(tools.Config{Tools: list})
	require.NoError(w.t, err)
	w.memory = agent.NewMemoryRecorder()
	s := w.session
	s.Environment, s.Tools, s.Task = toolSandbox{inner, w.timeout}, registry, agent.Task{Text: "PARENT"}
	s.Model, s.Recorder = cmp.Or[model.Model](s.Model, w.model), cmp.Or[agent.Recorder](s.Recorder, w.memory)
	w.out = a.Run(ctx, s)
}

// namedTool is a tool that prints its name.
type namedTool string

func (p namedTool) Spec() tools.Spec {
	return tools.Spec{Name: string(p), Usage: string(p), Description: "says so"}
}

func (p namedTool) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Output: string(p) + "\n"}, nil
}

// lastMessage returns the last message before the model call after the n-th reply of a
// task, from 0.
func (w *fixture) lastMessage(task string, n int) string {
	w.t.Helper()
	if prompts := w.model.prompts[task]; n+1 < len(prompts) {
		return prompts[n+1]
	}
	w.t.Fatalf("%s was asked %d times", task, len(w.model.prompts[task]))
	return ""
}

// child returns the journal of a child.
func (w *fixture) child(n string) *trajectories.Attempt {
	w.t.Helper()
	tr, err := trajectories.Fold(trajectories.Read(filepath.Join(w.dir, "children", n, "journal.jsonl")))
	require.NoError(w.t, err)
	if tr.Outcome == nil {
		w.t.Fatalf("child %s has no outcome", n)
	}
	return tr
}

// calls returns the records of a tool's calls.
func (w *fixture) calls(name string) []trajectories.ToolCall {
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
		assert.Contains(t, text, p)
	}
}

func TestChildReports(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash("echo data > f.txt"), bash(toolCall("delegate", "--pass", "f.txt", "--pass", "a text", "CHILD work")), submit},
		"CHILD":  {bash("cat f.txt; echo more >> f.txt"), submitReport("all is well\n\nsecond line")},
	})
	w.run(t.Context())
	contains(t, w.lastMessage("PARENT", 1), "[0] all is well\n\nsecond line\n")
	contains(t, w.model.prompts["CHILD"][0], "CHILD work", "<passed file=\"f.txt\">\ndata\n</passed>", "<passed>\na text\n</passed>")
	contains(t, w.lastMessage("CHILD", 0), "[0] data")
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
	children := w.calls("delegate")[0].Children()
	if len(children) != 1 || children[0].Journal != "children/1/journal.jsonl" || len(children[0].SHA256) != 64 || children[0].Steps != 2 || children[0].Cost != 0.5 {
		t.Errorf("details: %+v", children)
	}
}

func TestJSONReports(t *testing.T) {
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	tests := []struct {
		name    string
		replies []string
		want    string
	}{
		{"directly", []string{submitReport(`{"n": 1}`)}, "[0] {\"n\":1}\n"},
		{"in a fence", []string{"Here {it} is:\n```json\n{\"n\": 2}\n```\nand not {\"n\":\"9\"}"}, "[0] {\"n\":2}\n"},
		{"by braces", []string{submitReport(`It {is} {"m":"}"} this: {"n": 3} as you see`)}, "[0] {\"n\":3}\n"},
		{"again", []string{submitReport(`{"n": "x"}`), submitReport(`{"n": 4}`)}, "[0] {\"n\":4}\n"},
		{"never", []string{submitReport(`{"n": "x"}`), submitReport("sorry")}, "[1] sorry\nmini-tool: delegate: the child's report is not what was asked for, also when it was asked again: there is no JSON in it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "--json", schema, "CHILD")), submit}, "CHILD": tt.replies})
			w.run(t.Context())
			contains(t, w.lastMessage("PARENT", 0), tt.want)
			contains(t, w.model.prompts["CHILD"][0], schema)
			if len(tt.replies) > 1 {
				contains(t, w.lastMessage("CHILD", 0), "The report does not serve", "does not satisfy the schema", schema)
			}
		})
	}
}

func TestInvalidArguments(t *testing.T) {
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
		w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall(tt.args...)), submit}})
		w.run(t.Context())
		contains(t, w.lastMessage("PARENT", 0), "[2] ", tt.want)
		if list, err := os.ReadDir(filepath.Join(w.dir, "children")); err == nil {
			t.Errorf("%.60q made %d children", tt.args, len(list))
		}
	}
}

func TestLimits(t *testing.T) {
	busy := []string{bash("true"), bash("true"), bash("true"), bash("true"), bash("true"), bash("true")}
	tests := []struct {
		name   string
		change func(*fixture)
		want   string // part of the parent's next message; "" if there is none
		status string // exit status of the parent
		child  string // exit status of the child
		steps  int    // of parent and child together
	}{
		{
			"the child's own", func(w *fixture) { w.options.Config.StepLimit = 2 },
			"[1] thought\n```bash\ntrue\n```\nmini-tool: delegate: the child ended without a report after 2 steps: LimitsExceeded", "Submitted", "LimitsExceeded", 4,
		},
		{"the child's cost", func(w *fixture) { w.options.Config.CostLimit = 0.5 }, "[1] ", "Submitted", "LimitsExceeded", 4},
		{"what the parent has left of steps", func(w *fixture) { w.cfg.StepLimit = 4 }, "", "LimitsExceeded", "LimitsExceeded", 4},
		{"what the parent has left of money", func(w *fixture) { w.cfg.CostLimit = 1 }, "", "LimitsExceeded", "LimitsExceeded", 4},
		{"the run's", func(w *fixture) {
			n := 0
			w.session.ReserveCall = func() error {
				if n++; n > 3 {
					return agent.ErrBudgetExhausted
				}
				return nil
			}
		}, "", "BudgetExhausted", "BudgetExhausted", 3},
		{"the provider", func(w *fixture) {
			w.model.fail = map[string]error{"CHILD": &model.Error{Status: model.RateLimited, Err: errors.New("later")}}
		}, "[1] mini-tool: delegate: the child ended without a report after 1 step: RateLimited", "Submitted", "RateLimited", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": busy})
			tt.change(w)
			w.run(t.Context())
			if tt.want != "" {
				contains(t, w.lastMessage("PARENT", 0), tt.want)
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

func TestParallelChildrenShareLimits(t *testing.T) {
	var many []string
	for range 20 {
		many = append(many, bash("true"))
	}
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("delegate", "ONE") + "\n" + toolCall("delegate", "TWO") + "\n" + toolCall("delegate", "THREE")), submit}, "ONE": many, "TWO": many, "THREE": many,
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

func TestDepthAndMaxChildren(t *testing.T) {
	replies := map[string][]string{
		"PARENT": {bash(toolCall("delegate", "CHILD")), bash(toolCall("delegate", "LATER")), bash(toolCall("delegate", "LAST")), submit},
		"CHILD":  {bash(toolCall("delegate", "GRANDSON")), submitReport("done")}, "GRANDSON": {bash(toolCall("delegate", "x")), submitReport("deep")}, "LATER": {submitReport("late")},
	}
	w := newFixture(t, replies)
	w.options.Config.Depth, w.options.Config.MaxChildren = 2, 3
	w.run(t.Context())
	contains(t, w.lastMessage("CHILD", 0), "[0] deep")
	contains(t, w.lastMessage("GRANDSON", 0), "[2] ", "there is no tool")
	contains(t, w.lastMessage("PARENT", 0), "[0] done")
	contains(t, w.lastMessage("PARENT", 1), "[0] late")
	contains(t, w.lastMessage("PARENT", 2), "[1] mini-tool: delegate: there were 3 children, and no more are allowed (agents.max)")
	if p := w.child("2").Header.Parent; p.ParentChild != 1 || p.Depth != 2 {
		t.Errorf("grandchild: %+v", p)
	}
	if c := w.child("1"); c.Outcome.Steps != 4 || c.Outcome.ChildSteps != 2 || w.out.Steps != 9 || w.out.ChildSteps != 5 {
		t.Errorf("child: %+v, all: %+v", c.Outcome, w.out)
	}
	w = newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {bash(toolCall("delegate", "x")), submitReport("done")}})
	w.run(t.Context())
	contains(t, w.lastMessage("CHILD", 0), "[2] ", "there is no tool")
}

func TestProfile(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("delegate", "--profile", "keeper", "CHILD")), submit},
		"CHILD":  {bash(toolCall("note")), bash(toolCall("search")), bash("touch x"), bash("echo other"), submitReport("done")},
	})
	own := w.options.Definition
	w.options.Definition = func(profile string) (subagents.Definition, error) {
		if profile == "" {
			return own("")
		}
		cfg := config()
		cfg.InstanceTemplate = "Keep it: {{.task}}"
		a, err := agent.New(subagents.ProfileConfig(cfg, w.cfg, w.options.Config))
		return subagents.Definition{
			Agent: a, AllowsTool: func(name string) bool { return name == "note" }, Approver: denyCommand("touch x"),
		}, err
	}
	w.session.Approver = denyCommand("echo other")
	w.run(t.Context())
	contains(t, w.model.prompts["CHILD"][0], "Keep it: CHILD")
	contains(t, w.lastMessage("CHILD", 0), "[0] note")
	contains(t, w.lastMessage("CHILD", 1), "[2] ", "there is no tool")
	contains(t, w.lastMessage("CHILD", 2), "not allowed here")
	contains(t, w.lastMessage("CHILD", 3), "not allowed here")
	contains(t, w.lastMessage("PARENT", 0), "[0] done")
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
	defaults := subagents.ProfileConfig(parent, parent, subagents.Config{StepLimit: 5})
	if child := subagents.ChildConfig(parent, subagents.Config{StepLimit: 5}); defaults.SystemTemplate != child.SystemTemplate || defaults.InstanceTemplate != child.InstanceTemplate {
		t.Errorf("a profile without prompts has others than a child: %q %q", defaults.SystemTemplate, defaults.InstanceTemplate)
	}
	profile := parent
	profile.SystemTemplate, profile.StepLimit = "own system", 3
	got := subagents.ProfileConfig(profile, parent, subagents.Config{StepLimit: 5})
	if got.SystemTemplate != "own system" || got.InstanceTemplate != defaults.InstanceTemplate || got.StepLimit != 3 || defaults.StepLimit != 5 {
		t.Errorf("%+v", got)
	}
	profile.InstanceTemplate = "own instance"
	got = subagents.ProfileConfig(profile, parent, subagents.Config{})
	if got.SystemTemplate != "own system" || got.InstanceTemplate != "own instance" || got.Autosubmit || got.Submission != agent.SubmissionText {
		t.Errorf("%+v", got)
	}
}

// denyCommand is an approver that denies one command.
type denyCommand string

func (d denyCommand) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	if p.Command == string(d) {
		return agent.Decision{Action: agent.Deny, By: "rule"}, nil
	}
	return agent.Decision{Action: agent.Allow}, nil
}

func TestSkillRestrictsTools(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("delegate", "--skill", "bisect", "CHILD")), submit},
		"CHILD":  {bash(toolCall("note")), bash(toolCall("search")), bash(toolCall("board", "list")), submitReport("done")},
	})
	w.options.Skill = func(string) (subagents.Skill, error) {
		return subagents.Skill{Body: "Halve it.", Restricted: true, AllowedTools: []string{"note"}}, nil
	}
	w.run(t.Context())
	contains(t, w.model.prompts["CHILD"][0], "<skill name=\"bisect\">\nHalve it.\n</skill>", "mini-tool note")
	contains(t, w.lastMessage("CHILD", 0), "[0] note")
	contains(t, w.lastMessage("CHILD", 1), "[2] ")
	contains(t, w.lastMessage("CHILD", 2), "[2] ")
}

func TestSkillRestrictsCommands(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("delegate", "--skill", "look", "CHILD")), submit},
		"CHILD": {
			bash("touch x"), bash("ls -a | wc -l"), bash("ls -a; touch x"), bash("cat > x <<'E'\nx\nE"), bash("ls $(touch x)"), bash("$X x"),
			bash(toolCall("note")), bash("MINI_TOOL_LOCAL=write mini-tool write x y"), bash("export MINI_TOOL_LOCAL=write; mini-tool write x y"),
			bash("/tmp/mini-tool note"), bash("./cat x"), bash("/tmp/ls"), submitReport("done"),
		},
	})
	w.options.Skill = func(string) (subagents.Skill, error) {
		return subagents.Skill{Body: "Look.", Restricted: true, AllowedTools: []string{"note"}, Bash: true, Commands: []string{"ls:*", "wc *"}}, nil
	}
	w.run(t.Context())
	for i, want := range []string{
		"does not allow touch x", "[0] 2", "does not allow touch", "does not allow", "does not allow touch", "cannot be told", "[0] note",
		"it sets MINI_TOOL_LOCAL", "it sets MINI_TOOL_LOCAL", "does not allow mini-tool note", "does not allow cat x", "does not allow ls",
	} {
		contains(t, w.lastMessage("CHILD", i), want)
	}
	contains(t, w.lastMessage("PARENT", 0), "[0] done")
}

func TestParentEndsChild(t *testing.T) {
	t.Run("the command's timeout", func(t *testing.T) {
		w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {""}})
		w.timeout = 3 * time.Second
		w.model.blocks = map[string]bool{"CHILD": true}
		w.run(t.Context())
		if c := w.child("1").Outcome; c.Class != trajectories.Interrupted || w.out.ExitStatus != "Submitted" {
			t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
		}
	})
	t.Run("the parent's time", func(t *testing.T) {
		w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {""}})
		w.cfg.WallTimeLimit = 3
		w.model.blocks = map[string]bool{"CHILD": true}
		w.run(t.Context())
		if c := w.child("1").Outcome; c.ExitStatus != "TimeExceeded" || w.out.ExitStatus != "TimeExceeded" {
			t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
		}
	})
	t.Run("an interruption", func(t *testing.T) {
		w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {bash("touch started; sleep 600")}})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		w.session.Approver = observer(func(p agent.ApprovalRequest) {
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
		w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {bash("touch started; sleep 600")}})
		w.session.Inbox = agent.NewInbox()
		w.session.Approver = observer(func(p agent.ApprovalRequest) {
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

// An approver's ErrInterrupted ends the child, not its parent. Requests of children
// have Child set.
func TestApproverOfChildren(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("delegate", "CHILD")), submit},
		"CHILD":  {bash(toolCall("delegate", "GRANDSON")), bash("echo stop"), bash("echo never")}, "GRANDSON": {bash("echo deep"), "deep"},
	})
	w.options.Config.Depth = 2
	var told []string
	w.session.Approver = approverFunc(func(p agent.ApprovalRequest) (agent.Decision, error) {
		told = append(told, fmt.Sprint(p.FromChild))
		if p.Command == "echo stop" {
			return agent.Decision{}, agent.ErrInterrupted
		}
		return agent.Decision{Action: agent.Allow}, nil
	})
	w.run(t.Context())
	contains(t, w.lastMessage("CHILD", 0), "[0] deep")
	contains(t, w.lastMessage("PARENT", 0), "the child ended without a report after 4 steps: Interrupted")
	assert.Equal(t, "false true true true false", strings.Join(told, " "), "children")
	if c := w.child("1").Outcome; c.ExitStatus != "Interrupted" || w.out.ExitStatus != "Submitted" {
		t.Errorf("child %s, parent %s", c.ExitStatus, w.out.ExitStatus)
	}
}

// The limit on steps applies to the sum of the steps of parent and children, and the
// event names it.
func TestLimitReachedEvent(t *testing.T) {
	w := newFixture(t, map[string][]string{"PARENT": {bash(toolCall("delegate", "CHILD")), submit}, "CHILD": {bash("true"), bash("true"), bash("true")}})
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
			assert.Equal(t, events.LimitSteps, l.Limit, "the limit")
			return
		}
	}
}

// approverFunc is an approver that is a function.
type approverFunc func(agent.ApprovalRequest) (agent.Decision, error)

func (s approverFunc) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
	return s(p)
}

// observer is an approver that calls a function and allows every command.
type observer func(agent.ApprovalRequest)

func (s observer) Decide(_ context.Context, p agent.ApprovalRequest) (agent.Decision, error) {
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
	w := newFixture(t, map[string][]string{
		"PARENT": {bash("cat > c.yaml <<'E'" + file + "E"), bash(toolCall("chain", "c.yaml")), submit},
		"FIND":   {submitReport("line 7 {{.previous}}")}, "MEND": {submitReport(`{"ok":true}`)}, "TELL": {"told"},
	})
	w.run(t.Context())
	contains(t, w.lastMessage("PARENT", 1), "[0] == find ==\nline 7 {{.previous}}\n== 2 ==\n{\"ok\":true}\n== tell ==\ntold\n")
	contains(t, w.model.prompts["MEND"][0], "MEND what was found: line 7 {{.previous}}")
	contains(t, w.model.prompts["TELL"][0], "TELL of line 7 {{.previous}} and {\"ok\":true}")
	if children := w.calls("chain")[0].Children(); len(children) != 3 || children[1].Name != "2" {
		t.Errorf("details: %+v", children)
	}
	w = newFixture(t, map[string][]string{
		"PARENT": {chainCall("- {name: a, task: FIND}\n- {name: b, task: MEND}\n- {name: c, task: TELL}\n"), submit},
		"FIND":   {submitReport("found")}, "MEND": {}, "TELL": {"told"},
	})
	w.run(t.Context())
	contains(t, w.lastMessage("PARENT", 0), "[1] == a ==\nfound\nmini-tool: chain: step \"b\" (2 of 3): the child ended without a report after 1 step: BadRequest")
	assert.Equal(t, 0, len(w.model.prompts["TELL"]), "the step after was asked")
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
		w := newFixture(t, map[string][]string{"PARENT": {chainCall(text), submit}, "FIND": {submitReport("found")}})
		w.run(t.Context())
		contains(t, w.lastMessage("PARENT", 0), "[2] ", want)
		assert.Equal(t, 0, len(w.model.prompts["FIND"]), "%q: a step was done", text)
	}
}

// The size of repeated reports is checked before they are inserted.
func TestChainReportSize(t *testing.T) {
	many := strings.Repeat("{{.previous}}", 1200)
	for step, want := range map[string]string{
		"{task: MEND, pass: ['" + many + "']}": "step \"b\" (2 of 2): what is passed: it has more than 196608 bytes with the reports in it",
		"{task: 'MEND " + many + "'}":          "step \"b\" (2 of 2): the task: it has more than 163840 bytes with the reports in it",
	} {
		w := newFixture(t, map[string][]string{
			"PARENT": {chainCall("- {name: a, task: FIND}\n- {name: b, " + step[1:]), submit},
			"FIND":   {strings.Repeat("x", 60<<10)}, "MEND": {"mended"},
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.run(t.Context())
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("it took %d MB", took>>20)
		}
		contains(t, w.lastMessage("PARENT", 0), want)
		assert.Equal(t, 0, len(w.model.prompts["MEND"]), "the step was done")
	}
}

// chainCall returns a reply that calls chain with a standard input.
func chainCall(input string) string {
	return bash(toolCall("chain", "-") + " <<< " + strings.ReplaceAll(input, "\n", `\n`))
}

func TestBoard(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {
			bash(toolCall("board", "set", "plan", "first this")), bash(toolCall("delegate", "CHILD")),
			bash(toolCall("board", "get", "plan")), bash(toolCall("board", "get")), bash(toolCall("board", "get", "nothing")), submit,
		},
		"CHILD": {bash(toolCall("board", "get", "plan")), bash(toolCall("board", "set", "plan", "then that")), "done"},
	})
	w.run(t.Context())
	contains(t, w.lastMessage("CHILD", 0), "[0] first this\n")
	contains(t, w.lastMessage("PARENT", 2), "[0] then that\n")
	contains(t, w.lastMessage("PARENT", 3), "[0] plan: then that\n")
	contains(t, w.lastMessage("PARENT", 4), "[1] mini-tool: board: there is no \"nothing\" on the board")
	assert.Equal(t, `{"board":{"key":"plan","value":"first this"}}`, string(w.calls("board")[0].Details), "details")
}

func TestBoardAfterResume(t *testing.T) {
	w := newFixture(t, map[string][]string{
		"PARENT": {bash(toolCall("board", "set", "a", "one")), bash(toolCall("board", "set", "b", "two")), bash(toolCall("delegate", "CHILD")), submit},
		"CHILD":  {bash(toolCall("board", "set", "b", "three")), "done"},
	})
	w.run(t.Context())
	state, err := agent.ReadResumeState(w.memory.Records())
	require.NoError(t, err)
	if !state.UsedSubagents() || state.Attempt.Totals.Children.Steps != 2 || state.Total().Steps != 6 {
		t.Errorf("past: %v, %+v, %+v", state.UsedSubagents(), state.Attempt.Totals.Children, state.Total())
	}
	w.model.replies["PARENT"] = append(w.model.replies["PARENT"], bash(toolCall("board", "get")), submit)
	last := len(state.Attempt.Entries) - 1
	state.Submitted = false
	state.Attempt.Rewind(state.Attempt.Entries[last-1].Record)
	state.Executions = nil
	w.session.Resume = state
	w.run(t.Context())
	contains(t, w.lastMessage("PARENT", 4), "[0] a: one\nb: three\n")
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
			assert.NoError(t, set("k"+string(rune('0'+i/10))+string(rune('0'+i%10)), "v"))
		})
	}
	all.Wait()
	assert.ErrorContains(t, set("one-more", "v"), "full")
	for i := range 16 {
		err := set("k0"+string(rune('0'+i%10)), strings.Repeat("x", 16<<10))
		if err != nil && i < 10 {
			t.Error(err)
		}
	}
	assert.Error(t, set("k11", strings.Repeat("x", 17<<10)), "a value that is too long was taken")
	res, err := b.Call(t.Context(), tools.Call{Args: []string{"list"}})
	if err != nil || bytes.Count([]byte(res.Output), []byte("\n")) != 100 {
		t.Errorf("%d bytes, %v", len(res.Output), err)
	}
}
