package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// office is a sandbox without processes. What a command gives there depends on its
// text alone, and is as long as in real attempts: most some hundred characters, now
// and then a whole file.
type office struct{ tools bool }

func (o office) Execute(_ context.Context, c env.Command) (env.Result, error) {
	if strings.Contains(c.Script, "rev-parse") {
		return env.Result{ExitCode: 1}, nil // no repository
	}
	if strings.Contains(c.Script, "COMPLETE_TASK") {
		out := "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\ndone\n"
		return env.Result{Output: []byte(out), Chars: int64(len(out)), Bytes: int64(len(out))}, nil
	}
	r := chance(c.Script)
	size := 100 + r.IntN(2500)
	if r.IntN(8) == 0 {
		size = 9000
	}
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%6d  def method_%d(self, value): return value.%x\n", b.Len(), r.IntN(900), r.Uint64())
	}
	code := 0
	if r.IntN(5) == 0 {
		code = 1
		fmt.Fprintf(&b, "AssertionError: test_%d failed\n", r.IntN(900))
	}
	out := b.String()
	return env.Result{Output: []byte(out), Chars: int64(len(out)), Bytes: int64(len(out)), ExitCode: code}, nil
}

func (o office) Info() env.Info {
	return env.Info{Dir: "/testbed", System: "Linux", Tools: o.tools}
}
func (office) Close(context.Context) error { return nil }

func chance(text string) *rand.Rand {
	var seed uint64
	for _, c := range []byte(text) {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 7))
}

// worker is a model that works for so many steps. Its replies depend on the step
// alone, and it counts three bytes a token, which estimates do not know.
type worker struct {
	speaks  protocol.Protocol
	steps   int
	step    int // made so far
	silent  bool
	seen    [][]model.Message
	told    map[int]string // what a person says while a step is made
	talk    *agent.Talk
	refused int // the step in which a reply asks for nothing
}

func counted(messages []model.Message) int64 {
	n := 0
	for _, m := range messages {
		n += 12 + len(m.Content)
		for _, c := range m.Calls {
			n += 12 + len(c.Name) + len(c.Arguments)
		}
	}
	return int64(n+2) / 3
}

func (w *worker) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	w.step++
	w.seen = append(w.seen, messages)
	if text := w.told[w.step]; text != "" {
		w.talk.Steer(text)
	}
	r := chance(fmt.Sprint("step ", w.step))
	thought := strings.Repeat("I look at the next file. ", 2+r.IntN(20))
	command := fmt.Sprintf("sed -n %d,%dp src/module_%d.py", w.step, w.step+40, w.step%17)
	if w.step == w.steps {
		command = submit
	}
	m := w.speaks.Write(thought, command)
	if w.step == w.refused {
		m = model.Message{Role: model.Assistant, Content: "Let me think."}
	}
	finish := model.FinishStop
	for i := range m.Calls {
		m.Calls[i].ID, finish = fmt.Sprintf("c%d", w.step), model.FinishTools
	}
	u := model.Usage{Prompt: counted(messages), Completion: counted([]model.Message{m})}
	if w.silent {
		u = model.Usage{}
	}
	return model.Reply{Message: m, Finish: finish, Usage: u, Cost: 0.01, Tries: 1}, nil
}

// clerk is a model that makes summaries.
type clerk struct {
	mu    sync.Mutex
	asked []string
	err   error
	reply func(n int, prompt string) string
}

func (c *clerk) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, messages[0].Content)
	if c.err != nil {
		return model.Reply{Usage: model.Usage{Prompt: 7}, Cost: 0.5, Tries: 1}, c.err
	}
	var parts int
	if _, err := fmt.Sscanf(messages[0].Content, "Sum up %d parts", &parts); err != nil {
		return model.Reply{}, err
	}
	text := ""
	for part := range parts {
		text += fmt.Sprintf("=== Part %d ===\nSummary number %d. %s\n\n", part+1, len(c.asked), strings.Repeat("It was found out that method_7 is wrong. ", 60/parts))
	}
	if c.reply != nil {
		text = c.reply(len(c.asked), messages[0].Content)
	}
	return model.Reply{
		Message: model.Message{Role: model.Assistant, Content: text}, Finish: model.FinishStop,
		Usage: model.Usage{Prompt: 1000, Completion: 200}, Cost: 0.5, Tries: 1,
	}, nil
}

func longConfig(speaks string) agent.Config {
	cfg := config()
	cfg.Protocol, cfg.SystemTemplate = speaks, "You work at {{.cwd}}."
	cfg.Compaction, cfg.CompactionTokens = agent.CompactSummarize, 20_000
	cfg.SummaryTemplate = "Sum up {{len .parts}} parts of {{.task}}.\n{{range .parts}}=== Part {{.number}}: {{.first_step}}-{{.last_step}} ===\n{{.text}}\n{{end}}In {{.max_chars}}."
	return cfg
}

// long runs an attempt, or goes on with one.
func long(ctx context.Context, t *testing.T, cfg agent.Config, w *worker, s agent.Session, rec *memory) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if w.speaks, err = cfg.Speaks(); err != nil {
		t.Fatal(err)
	}
	w.talk = agent.NewTalk()
	s.Model, s.Recorder, s.Talk = w, rec, w.talk
	if s.Environment == nil {
		s.Environment = office{}
	}
	s.Task = agent.Task{Text: "mend method_7"}
	return a.Run(ctx, s)
}

// onRecord are the prompts that the records tell of.
func onRecord(t *testing.T, rec *memory) [][]model.Message {
	t.Helper()
	var all [][]model.Message
	for p, err := range trajectories.Prompts(rec.all()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Messages)
	}
	return all
}

// of are the records of a type.
func (m *memory) of(kind trajectories.Type) []trajectories.Record {
	var list []trajectories.Record
	for _, r := range m.records {
		if r.Type == kind {
			list = append(list, r)
		}
	}
	return list
}
