package trajectories_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// recordList is the records of a journal. Its methods append records and return IDs.
type recordList []trajectories.Record

func (p *recordList) add(t trajectories.Type, data any) int {
	raw, err := trajectories.EncodeJSON(data)
	if err != nil {
		panic(err)
	}
	n := len(*p)
	*p = append(*p, trajectories.Record{ID: n + 1, Parent: n, Type: t, Data: raw})
	return n + 1
}

func (p *recordList) addMessage(role model.Role, cause trajectories.Cause, text string) int {
	return p.add(trajectories.TypeMessage, trajectories.Message{Message: model.Message{Role: role, Content: text}, Cause: cause})
}

// addStep adds a call, its reply and the observation.
func (p *recordList) addStep(n int) (reply, answer int) {
	p.add(trajectories.TypeCall, trajectories.Call{Cost: 1, RequestCount: 1})
	reply = p.addMessage(model.Assistant, trajectories.CauseReply, fmt.Sprint("reply ", n))
	return reply, p.addMessage(model.User, trajectories.CauseObservation, fmt.Sprint("output ", n))
}

func (p recordList) all() iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for _, r := range p {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// compactedAttempt returns an attempt with all kinds of compactions.
func compactedAttempt() recordList {
	var p recordList
	replacement := func(from, to int, join bool, text string) trajectories.Replacement {
		return trajectories.Replacement{From: from, To: to, Join: join, Message: model.Message{Role: model.User, Content: text}}
	}
	p.add(trajectories.TypeHeader, trajectories.Header{Format: trajectories.Format, InstanceID: "i", Attempt: 1})
	p.addMessage(model.System, trajectories.CausePrompt, "system")
	p.addMessage(model.User, trajectories.CausePrompt, "task")
	first, second := p.addStep(1)
	p.addMessage(model.User, trajectories.CauseSteer, "steer")
	_, third := p.addStep(2)
	// One output is elided.
	p.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "elide", Replaced: []trajectories.Replacement{replacement(second, second, false, "[1]")}})
	_, fourth := p.addStep(3)
	// Steps 1 and 2 are summarized, except for a user message.
	p.add(trajectories.TypeSummary, trajectories.Call{Cost: 5, RequestCount: 1})
	compaction := p.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "summarize", Replaced: []trajectories.Replacement{
		replacement(first, second, true, "sum 1"), replacement(third-1, third, true, "sum 2"),
	}})
	// A failed call, and an abandoned compaction.
	p.addStep(99)
	p.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "summarize", Replaced: []trajectories.Replacement{replacement(first, fourth, true, "never")}})
	p.add(trajectories.TypeResume, trajectories.Resume{Record: compaction})
	p[len(p)-1].Parent = compaction
	// A tail that is joined to the output, and a context with selected messages.
	p.add(trajectories.TypeContext, trajectories.PromptContext{Sent: []trajectories.ContextPart{{From: 2, To: fourth}}, Tail: "tail"})
	_, fifth := p.addStep(4)
	p.add(trajectories.TypeContext, trajectories.PromptContext{Sent: []trajectories.ContextPart{
		{From: 2, To: 2}, {From: 3, To: third}, {Message: &model.Message{Role: model.Assistant, Content: "own"}},
	}, Tail: "tail 2"})
	p.addStep(5)
	// Replacements are replaced again, with more messages.
	p.add(trajectories.TypeCompaction, trajectories.Compaction{Policy: "summarize", Replaced: []trajectories.Replacement{replacement(third-1, fifth, true, "sum 3")}})
	p.addStep(6)
	return p
}

// wantPrompts are the prompts of compactedAttempt: messages separated by |, joined texts
// by +.
var wantPrompts = []string{
	"system|task",
	"system|task|reply 1|output 1|steer",
	"system|task|reply 1|[1]|steer|reply 2|output 2",
	"system|task+sum 1+steer+sum 2|reply 3|output 3",
	"system|task+sum 1+steer+sum 2|reply 3|output 3+tail",
	"system|task+sum 1+steer+sum 2|own|tail 2",
	"system|task+sum 1+steer+sum 3|reply 5|output 5",
}

func readPrompts(t *testing.T, records iter.Seq2[trajectories.Record, error]) []string {
	t.Helper()
	var all []string
	for p, err := range trajectories.Prompts(records) {
		require.NoError(t, err)
		all = append(all, joinContents(p.Messages))
	}
	return all
}

func joinContents(messages []model.Message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, strings.ReplaceAll(m.Content, "\n\n", "+"))
	}
	return strings.Join(texts, "|")
}

func TestPromptsAfterCompactions(t *testing.T) {
	p := compactedAttempt()
	assert.NoDiff(t, cmp.Diff(wantPrompts, readPrompts(t, p.all())), "(-want +got)")
}

// TestAttemptsAfterCompactions checks that an attempt and its records have the prompt
// of each reply, without references to compactions.
func TestAttemptsAfterCompactions(t *testing.T) {
	p := compactedAttempt()
	tr, err := trajectories.Fold(p.all())
	require.NoError(t, err)
	assert.Equal(t, 3, len(tr.Compactions), "compactions")
	var got []string
	var records []int
	for i, e := range tr.Entries {
		records = append(records, e.Record)
		if e.Cause != trajectories.CauseReply {
			continue
		}
		var sent []model.Message
		if e.Context == nil {
			for _, m := range tr.Entries[:i] {
				sent = append(sent, m.Message.Message)
			}
		} else {
			indexes, own := e.Context.Resolve(records[:i])
			for _, n := range indexes {
				if n >= 0 {
					sent = append(sent, tr.Entries[n].Message.Message)
					continue
				}
				sent, own = append(sent, own[0]), own[1:]
			}
		}
		got = append(got, joinContents(sent))
	}
	want := slices.Delete(slices.Clone(wantPrompts), 3, 4) // the reply to the fourth prompt is abandoned
	assert.Equal(t, want, got, "by contexts")
	// The failed call comes last.
	gotPrompts := readPrompts(t, tr.Records())
	assert.Equal(t, want, gotPrompts[:len(gotPrompts)-1], "by the records of the attempt")
}

// TestTrajAfterCompactions checks that a .traj.json has the whole conversation, the number
// of compactions before each reply, and a cost that includes summaries.
func TestTrajAfterCompactions(t *testing.T) {
	p := compactedAttempt()
	dir := t.TempDir()
	journal, out := filepath.Join(dir, "journal.jsonl"), filepath.Join(dir, "a.traj.json")
	require.NoError(t, trajectories.WriteJournal(journal, p.all()))
	require.NoError(t, trajectories.WriteTrajFile(journal, out))
	var traj struct {
		Info struct {
			Stats struct {
				Cost  float64 `json:"instance_cost"`
				Calls int     `json:"api_calls"`
			} `json:"model_stats"`
		}
		Messages []struct {
			Role  string
			Extra struct{ Compactions int }
		}
	}
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &traj))
	var counts []int
	for _, m := range traj.Messages {
		if m.Role == "assistant" {
			counts = append(counts, m.Extra.Compactions)
		}
	}
	assert.Equal(t, []int{0, 0, 1, 2, 2, 3}, counts, "compactions before each reply")
	if traj.Info.Stats.Cost != 12 || traj.Info.Stats.Calls != 7 {
		t.Errorf("%d calls for %v", traj.Info.Stats.Calls, traj.Info.Stats.Cost)
	}
}

// TestHostileCompactions checks that reading terminates for any compaction.
func TestHostileCompactions(t *testing.T) {
	for name, replaced := range map[string]string{
		"backwards":   `[{"from":9,"to":2,"message":{"role":"user","content":"x"}}]`,
		"overlapping": `[{"from":2,"to":5,"message":{"role":"user","content":"x"}},{"from":4,"to":9,"join":true,"message":{"role":"user","content":"y"}}]`,
		"beyond":      `[{"from":-5,"to":99999999999,"join":true,"message":{"role":"user","content":"x"}}]`,
		"of nothing":  `[{"from":5000,"to":6000,"message":{"role":"tool","content":"x"}}]`,
		"null":        `null`,
	} {
		t.Run(name, func(t *testing.T) {
			p := compactedAttempt()
			for i, r := range p {
				if r.Type == trajectories.TypeCompaction {
					p[i].Data = json.RawMessage(`{"policy":"p","replaced":` + replaced + `}`)
				}
			}
			assert.Equal(t, len(wantPrompts), len(readPrompts(t, p.all())), "prompts")
			_, err := trajectories.Fold(p.all())
			assert.NoError(t, err)
		})
	}
}
