package agent_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Replies without a command.
func TestPlainReply(t *testing.T) {
	edit := bash("echo two >> a.txt")
	tests := map[string]struct {
		change func(*agent.Config)
		reply  model.Reply // the reply of the second step; a submission follows
		ends   bool
		patch  bool
	}{
		"ends, with the working diff":           {patches, plainReply("All done."), true, true},
		"ends, and hands in no text":            {func(*agent.Config) {}, plainReply("All done."), true, false},
		"is an error by default":                {func(c *agent.Config) { c.PlainReply = "" }, plainReply("All done."), false, false},
		"is an error by choice":                 {func(c *agent.Config) { c.PlainReply = agent.PlainReplyError }, plainReply("All done."), false, false},
		"two blocks are an error":               {patches, plainReply(edit + edit), false, true},
		"cut off":                               {patches, finished("All do", model.FinishLength), false, true},
		"a call of a tool that was not offered": {patches, finished("I call.", model.FinishToolCalls), false, true},
		"a block that is not closed":            {patches, plainReply("```bash\nls\n"), false, true},
		"a block of another language":           {patches, plainReply("All done:\n```python\nx\n```"), true, true},
		"a block of a pattern of one's own": {func(c *agent.Config) {
			patches(c)
			c.ActionRegex = "```bash\\n(.*?)\\n```"
		}, plainReply("```bash\nls"), false, true},
		"a tag that is not closed":    {func(c *agent.Config) { patches(c); c.Protocol = protocol.XML }, plainReply("<bash>ls"), false, true},
		"saying nothing is an error":  {patches, plainReply(" \n"), false, true},
		"of tools":                    {tools, plainReply("All done."), true, true},
		"of tools, with a wrong call": {tools, called("All done."), false, true},
		"of a tag":                    {func(c *agent.Config) { patches(c); c.Protocol = protocol.XML }, plainReply("All done."), true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.PlainReply = agent.PlainReplyEnd
			test.change(&cfg)
			p, err := cfg.ParseProtocol()
			require.NoError(t, err)
			s := &scriptedModel{}
			write := func(command string) model.Reply {
				return model.Reply{Message: p.FormatReply("thought", command), FinishReason: model.FinishStop, Tries: 1}
			}
			s.replies = []model.Reply{write("echo two >> a.txt"), test.reply, write(submit)}
			rec := agent.NewMemoryRecorder()
			out := run(t.Context(), t, cfg, s, rec)
			steps := 3
			if test.ends {
				steps = 2
			}
			if out.ExitStatus != "Submitted" || out.Steps != steps || (len(out.Submission) > 0) != test.patch {
				t.Errorf("%s after %d steps, want %d: %s", out.ExitStatus, out.Steps, steps, out.Submission)
			}
			if got, err := trajectories.Fold(rec.Records()); err != nil || got.Outcome == nil || len(got.Entries) < 2+steps {
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

func plainReply(text string) model.Reply { return finished(text, model.FinishStop) }

func finished(text string, reason model.FinishReason) model.Reply {
	return model.Reply{Message: model.Message{Role: model.Assistant, Content: text}, FinishReason: reason, Tries: 1}
}

func called(text string) model.Reply {
	r := plainReply(text)
	r.Message.ToolCalls = []model.ToolCall{{ID: "1", Name: "python", Arguments: "{}"}}
	return r
}

// The records of a MemoryRecorder can be read and written like a journal.
func TestMemoryRecorder(t *testing.T) {
	rec := agent.NewMemoryRecorder()
	out := run(t.Context(), t, config(), replies(bash("echo hello"), bash(submit)), rec)
	got, err := trajectories.Fold(rec.Records())
	if err != nil || got.Header.Format != trajectories.Format || got.Outcome.Steps != out.Steps || got.Outcome.ExitStatus != "Submitted" {
		t.Errorf("%+v, %v", got, err)
	}
	path := t.TempDir() + "/journal.jsonl"
	require.NoError(t, trajectories.WriteJournal(path, rec.Records()))
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
	assert.Equal(t, 0, n, "records more in the file")
	_, err = rec.Append(trajectories.TypeMessage, func() {})
	assert.Error(t, err, "a function is recorded")
	_, err = agent.ReadResumeState(rec.Records())
	assert.NoError(t, err)
}

// A plain reply passes the turn to the user, and does not count as a format error.
func TestPlainReplyAsksTheUser(t *testing.T) {
	cfg := config()
	cfg.PlainReply, cfg.MaxFormatErrors = agent.PlainReplyAsk, 2
	a, err := agent.New(cfg)
	require.NoError(t, err)
	s := &scriptedModel{replies: []model.Reply{plainReply("Which file?"), plainReply("Sure?"), plainReply("Done."), finished(bash(submit), model.FinishStop)}}
	answers := sequence("a.txt", "yes")
	rec := newRecorder()
	repo := agenttest.NewRepository(t)
	out := a.Run(t.Context(), agent.Session{Model: s, Environment: repo.Sandbox, Repository: repo, Recorder: rec, User: fakeUser{says: answers}})
	if out.ExitStatus != "Submitted" || out.Steps != 4 {
		t.Errorf("%s after %d steps: %s", out.ExitStatus, out.Steps, out.Error)
	}
	got, err := trajectories.Fold(rec.all())
	require.NoError(t, err)
	var causes []trajectories.Cause
	for _, e := range got.Entries[2:] {
		if e.Cause != trajectories.CauseReply {
			causes = append(causes, e.Cause)
		}
	}
	want := []trajectories.Cause{trajectories.CauseSteer, trajectories.CauseSteer, trajectories.CauseFormatError}
	assert.Equal(t, want, causes, "the replies are answered by")
}

// After too many format errors, a resumed attempt reaches the model again.
func TestResumeAfterFormatErrors(t *testing.T) {
	cfg := config()
	cfg.MaxFormatErrors = 2
	for name, text := range map[string]string{"with a message": "use bash", "as it is": ""} {
		t.Run(name, func(t *testing.T) {
			rec := newRecorder()
			(&firstSession{cfg: cfg, rec: rec, m: replies("none", "none")}).run(t)
			state, err := agent.ReadResumeState(rec.all())
			if err != nil || !state.EndedByFormatErrors {
				t.Fatal(state, err)
			}
			rec.records = rec.records[:state.LastRecord]
			a, err := agent.New(cfg)
			require.NoError(t, err)
			inbox, m := agent.NewInbox(), replies(bash(submit))
			if text != "" {
				inbox.Interrupt(message(text))
			}
			repo := agenttest.NewRepository(t)
			out := a.Run(t.Context(), agent.Session{Model: m, Environment: repo.Sandbox, Repository: repo, Recorder: rec, Resume: state, Inbox: inbox})
			last := m.prompts[0][len(m.prompts[0])-1].Content
			if out.ExitStatus != "Submitted" || !strings.Contains(last, text) {
				t.Errorf("%s %s; the model is asked %q", out.ExitStatus, out.Error, last)
			}
		})
	}
}
