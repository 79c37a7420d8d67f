package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// fakeSandbox is a sandbox without processes. The output of a command depends
// only on its text. As in real attempts, most outputs have some hundred
// characters and a few are whole files.
type fakeSandbox struct{ tools bool }

func (o fakeSandbox) Execute(_ context.Context, c env.Command) (env.Result, error) {
	if slices.Equal(c.Interpreter, []string{env.RepositoryProgram}) {
		return env.Result{ExitCode: 127}, nil // there is none
	}
	if strings.Contains(c.Script, "COMPLETE_TASK") {
		out := "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\ndone\n"
		return env.Result{Output: []byte(out), Chars: int64(len(out)), Bytes: int64(len(out))}, nil
	}
	r := seededRand(c.Script)
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

func (o fakeSandbox) Info() env.Info {
	return env.Info{Dir: "/testbed", System: "Linux", Tools: o.tools}
}
func (fakeSandbox) Close(context.Context) error { return nil }

func seededRand(text string) *rand.Rand {
	var seed uint64
	for _, c := range []byte(text) {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 7))
}

// workingModel is a model that works for a number of steps. Its replies depend
// only on the step. It counts three bytes per token, unlike the estimate.
type workingModel struct {
	protocol     protocol.Protocol
	steps        int
	step         int // calls so far
	omitUsage    bool
	prompts      [][]model.Message
	userMessages map[int]string // user messages by the step in which they are sent
	inbox        *agent.Inbox
	plainStep    int           // the step whose reply has no command
	errs         map[int]error // by the call that fails, from 1
}

func countTokens(messages []model.Message) int64 {
	n := 0
	for _, m := range messages {
		n += 12 + len(m.Content)
		for _, c := range m.ToolCalls {
			n += 12 + len(c.Name) + len(c.Arguments)
		}
	}
	return int64(n+2) / 3
}

func (w *workingModel) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	w.step++
	w.prompts = append(w.prompts, messages)
	if err := w.errs[w.step]; err != nil {
		return model.Reply{}, err
	}
	if text := w.userMessages[w.step]; text != "" {
		w.inbox.Steer(text)
	}
	r := seededRand(fmt.Sprint("step ", w.step))
	thought := strings.Repeat("I look at the next file. ", 2+r.IntN(20))
	command := fmt.Sprintf("sed -n %d,%dp src/module_%d.py", w.step, w.step+40, w.step%17)
	if w.step == w.steps {
		command = submit
	}
	m := w.protocol.FormatReply(thought, command)
	if w.step == w.plainStep {
		m = model.Message{Role: model.Assistant, Content: "Let me think."}
	}
	finish := model.FinishStop
	for i := range m.ToolCalls {
		m.ToolCalls[i].ID, finish = fmt.Sprintf("c%d", w.step), model.FinishToolCalls
	}
	u := model.Usage{Prompt: countTokens(messages), Completion: countTokens([]model.Message{m})}
	if w.omitUsage {
		u = model.Usage{}
	}
	return model.Reply{Message: m, FinishReason: finish, Usage: u, Cost: 0.01, Tries: 1}, nil
}

// summaryModel is a model that writes summaries.
type summaryModel struct {
	mu      sync.Mutex
	prompts []string
	err     error
	reply   func(n int, prompt string) string
}

func (c *summaryModel) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts = append(c.prompts, messages[0].Content)
	if c.err != nil {
		return model.Reply{Usage: model.Usage{Prompt: 7}, Cost: 0.5, Tries: 1}, c.err
	}
	var parts int
	if _, err := fmt.Sscanf(messages[0].Content, "Sum up %d parts", &parts); err != nil {
		return model.Reply{}, err
	}
	text := ""
	for part := range parts {
		text += fmt.Sprintf("=== Part %d ===\nSummary number %d. %s\n\n", part+1, len(c.prompts), strings.Repeat("It was found out that method_7 is wrong. ", 60/parts))
	}
	if c.reply != nil {
		text = c.reply(len(c.prompts), messages[0].Content)
	}
	return model.Reply{
		Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: model.FinishStop,
		Usage: model.Usage{Prompt: 1000, Completion: 200}, Cost: 0.5, Tries: 1,
	}, nil
}

func compactionConfig(protocolName string) agent.Config {
	cfg := config()
	cfg.Protocol, cfg.SystemTemplate = protocolName, "You work at {{.cwd}}."
	cfg.Compaction, cfg.CompactionTokens = agent.CompactionSummarize, 20_000
	cfg.SummaryTemplate = "Sum up {{len .parts}} parts of {{.task}}.\n{{range .parts}}=== Part {{.number}}: {{.first_step}}-{{.last_step}} ===\n{{.text}}\n{{end}}In {{.max_chars}}."
	return cfg
}

// runSession runs an attempt or resumes one.
func runSession(ctx context.Context, t *testing.T, cfg agent.Config, w *workingModel, s agent.Session, rec *testRecorder) trajectories.Outcome {
	t.Helper()
	a, err := agent.New(cfg)
	require.NoError(t, err)
	if w.protocol, err = cfg.ParseProtocol(); err != nil {
		t.Fatal(err)
	}
	w.inbox = agent.NewInbox()
	s.Model, s.Recorder, s.Inbox = w, rec, w.inbox
	if s.Environment == nil {
		s.Environment = fakeSandbox{}
	}
	s.Task = agent.Task{Text: "mend method_7"}
	return a.Run(ctx, s)
}

// recordedPrompts returns the prompts that the records give.
func recordedPrompts(t *testing.T, rec *testRecorder) [][]model.Message {
	t.Helper()
	var all [][]model.Message
	for p, err := range trajectories.Prompts(rec.all()) {
		require.NoError(t, err)
		all = append(all, p.Messages)
	}
	return all
}

// ofType returns the records of a type.
func (m *testRecorder) ofType(kind trajectories.Type) []trajectories.Record {
	var list []trajectories.Record
	for _, r := range m.records {
		if r.Type == kind {
			list = append(list, r)
		}
	}
	return list
}
