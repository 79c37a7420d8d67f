package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// TestPlainReply is about replies that ask for no command.
func TestPlainReply(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := map[string]struct {
		change func(*agent.Config)
		reply  model.Reply // of the second step; a submission follows
		ends   bool
		patch  bool
	}{
		"ends, with the working diff": {patches, spoken("All done."), true, true},
		"ends, and hands in no text":  {func(*agent.Config) {}, spoken("All done."), true, false},
		"is an error by default":      {func(c *agent.Config) { c.PlainReply = "" }, spoken("All done."), false, false},
		"is an error by choice":       {func(c *agent.Config) { c.PlainReply = agent.PlainError }, spoken("All done."), false, false},
		"two blocks are an error":     {patches, spoken(edit + edit), false, true},
		"cut off":                     {patches, finished("All do", model.FinishLength), false, true},
		"a call that nobody offered":  {patches, finished("I call.", model.FinishTools), false, true},
		"a block that is not closed":  {patches, spoken("```bash\nls\n"), false, true},
		"a block of another language": {patches, spoken("All done:\n```python\nx\n```"), true, true},
		"a block of a pattern of one's own": {func(c *agent.Config) {
			patches(c)
			c.ActionRegex = "```bash\\n(.*?)\\n```"
		}, spoken("```bash\nls"), false, true},
		"a tag that is not closed":    {func(c *agent.Config) { patches(c); c.Protocol = protocol.XML }, spoken("<bash>ls"), false, true},
		"saying nothing is an error":  {patches, spoken(" \n"), false, true},
		"of tools":                    {tools, spoken("All done."), true, true},
		"of tools, with a wrong call": {tools, called("All done."), false, true},
		"of a tag":                    {func(c *agent.Config) { patches(c); c.Protocol = protocol.XML }, spoken("All done."), true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.PlainReply = agent.PlainEnd
			test.change(&cfg)
			p, err := cfg.Speaks()
			if err != nil {
				t.Fatal(err)
			}
			s := &script{}
			write := func(command string) model.Reply {
				return model.Reply{Message: p.Write("thought", command), Finish: model.FinishStop, Tries: 1}
			}
			s.replies = []model.Reply{write("echo two >> a.txt"), test.reply, write(submit)}
			rec := agent.NewMemory()
			out := run(t.Context(), t, cfg, s, rec)
			steps := 3
			if test.ends {
				steps = 2
			}
			if out.ExitStatus != "Submitted" || out.Steps != steps || (len(out.Submission) > 0) != test.patch {
				t.Errorf("%s after %d steps, want %d: %s", out.ExitStatus, out.Steps, steps, out.Submission)
			}
			if got, err := trajectories.Gather(rec.Records()); err != nil || got.Outcome == nil || len(got.Entries) < 2+steps {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func patches(c *agent.Config) { c.Submission = agent.SubmissionPatch }

func tools(c *agent.Config) {
	patches(c)
	c.Protocol = protocol.Tools
}

func spoken(text string) model.Reply { return finished(text, model.FinishStop) }

func finished(text string, why model.Finish) model.Reply {
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, Finish: why, Tries: 1}
}

func called(text string) model.Reply {
	r := spoken(text)
	r.Message.Calls = []model.Call{{ID: "1", Name: "python", Arguments: "{}"}}
	return r
}

// TestPlainReplyIsAnswered: a person who is there sees what the model said, and
// goes on.
func TestPlainReplyIsAnswered(t *testing.T) {
	cfg := config()
	cfg.PlainReply = agent.PlainEnd
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	next := inTurn("Both.")
	out := a.Run(t.Context(), agent.Session{
		Model: says("Which of them?", bash(submit)), Environment: repository(t), Recorder: agent.NewMemory(),
		Person: listens{func(s *agent.Submitted) string {
			heard = append(heard, fmt.Sprintf("%q", s.Reply))
			return next()
		}},
	})
	if out.ExitStatus != "Submitted" || out.Steps != 2 || fmt.Sprint(heard) != `["Which of them?" ""]` {
		t.Errorf("%s after %d steps; heard %v", out.ExitStatus, out.Steps, heard)
	}
}

// listens is a person whom only the end is of interest.
type listens struct{ next func(*agent.Submitted) string }

func (listens) Turn(context.Context) (string, error) { return "", nil }

func (listens) Raise(_ context.Context, l agent.Limits) (agent.Limits, bool, error) {
	return l, false, nil
}

func (l listens) Next(_ context.Context, s *agent.Submitted) (string, error) { return l.next(s), nil }

func TestPlainReplyIsChecked(t *testing.T) {
	cfg := config()
	cfg.PlainReply = "stop"
	if _, err := agent.New(cfg); err == nil || err.Error() != `agent.plain_reply: "stop" is neither "error" nor "end"` {
		t.Error(err)
	}
}

// TestMemory is read as a journal is, and makes one.
func TestMemory(t *testing.T) {
	rec := agent.NewMemory()
	out := run(t.Context(), t, config(), says(bash("echo hello"), bash(submit)), rec)
	got, err := trajectories.Gather(rec.Records())
	if err != nil || got.Header.Format != trajectories.Format || got.Outcome.Steps != out.Steps || got.Outcome.ExitStatus != "Submitted" {
		t.Errorf("%+v, %v", got, err)
	}
	path := t.TempDir() + "/journal.jsonl"
	if err := trajectories.Write(path, rec.Records()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for r, err := range trajectories.Read(path) {
		if n++; err != nil || r.ID != n || r.Parent != n-1 {
			t.Errorf("record %+v, %v", r, err)
		}
	}
	for _, err := range rec.Records() {
		if n--; err != nil {
			t.Error(err)
		}
	}
	if n != 0 {
		t.Errorf("%d records more in the file", n)
	}
	if _, err := rec.Append(trajectories.TypeMessage, func() {}); err == nil {
		t.Error("a function is recorded")
	}
	if _, err := agent.Recall(rec.Records()); err != nil {
		t.Error(err)
	}
}
