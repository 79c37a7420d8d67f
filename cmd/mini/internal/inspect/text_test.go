package inspect

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/hostile"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// Whatever stands in a trajectory, the terminal is not steered: on the screen, on
// any page, in the list and as text.
func TestHostileTrajectory(t *testing.T) {
	for _, a := range hostile.Attacks() {
		t.Run(a.Name, func(t *testing.T) {
			it := &Item{ID: a.Text, Path: "x", Status: a.Text, State: Ended, Verdict: a.Text, Flags: []string{a.Text}, Selected: true}
			tr := &Trajectory{Timeline: told(t, a.Text), Item: it}
			m := testView(t, 80, 24)
			m.list.take(Batch{Items: []*Item{it, {ID: "b", State: Broken, Problem: a.Text, Selected: true, Path: "b"}}, Notes: []string{a.Text}})
			calm(t, m)
			m.reasoning = true
			m.open(it)
			m.opened(opened{item: it, t: tr})
			for i := range m.reader.pages {
				m.reader.turn(i)
				calm(t, m)
			}
			m.see(thePatch, patchOf(tr))
			calm(t, m)
			m.say(true, "%s", a.Text)
			calm(t, m)
			var out bytes.Buffer
			for _, step := range tr.All() {
				if err := writeStep(&out, "t", step, true, true); err != nil {
					t.Fatal(err)
				}
			}
			if bad := hostile.Steers(out.String(), hostile.LineEnds|hostile.Colours); bad != "" {
				t.Errorf("as text it steers: %s", bad)
			}
		})
	}
}

// told is an attempt in which everything is one text.
func told(t *testing.T, text string) *timeline.Timeline {
	t.Helper()
	tl := &timeline.Timeline{}
	add := func(typ trajectories.Type, data any) {
		if err := tl.Add(recordOf(t, typ, data)); err != nil {
			t.Fatal(err)
		}
	}
	reply := trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{text, text}}
	reply.Content, reply.Reasoning = text, text
	add(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.Cause(text), Message: model.Message{Role: model.Role(text), Content: text}})
	add(trajectories.TypeImport, trajectories.Import{File: text, Format: text, Agent: text, Lost: []string{text}})
	add(trajectories.TypeMessage, reply)
	add(trajectories.TypeTool, trajectories.ToolCall{Name: text, Args: []string{text}, Errors: []byte(text), ExitCode: 1})
	add(trajectories.TypeExecution, trajectories.Execution{Command: text, Output: []byte(text), Exception: text})
	add(trajectories.TypeDecision, trajectories.Decision{Command: text, Ruling: trajectories.Ruling{Action: "deny", By: text, Reason: text}})
	add(trajectories.TypeCompaction, trajectories.Compaction{Policy: text, Fallback: text})
	add(trajectories.TypeScrub, trajectories.Scrub{Error: text})
	add(trajectories.TypeDiff, trajectories.Diff{Patch: []byte(text), Problem: text, OmittedCount: 1, Omitted: []string{text}})
	add(trajectories.TypeOutcome, trajectories.Outcome{
		Class: trajectories.Class(text), ExitStatus: text, PartialPatch: []byte(text), Error: text, Hint: text, Stack: text, Warnings: []string{text},
	})
	return tl
}

func recordOf(t *testing.T, typ trajectories.Type, data any) trajectories.Record {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return trajectories.Record{ID: 9, Type: typ, Data: text}
}

func calm(t *testing.T, m *view) {
	t.Helper()
	shown := m.View().Content
	if bad := hostile.Steers(shown, hostile.LineEnds|hostile.Colours); bad != "" {
		t.Errorf("it steers: %s: %.300q", bad, shown)
	}
	for i, line := range strings.Split(shown, "\n") {
		if w := ansi.StringWidthWc(line); w > m.width || i >= m.height {
			t.Errorf("line %d has %d columns: %q", i, w, line)
		}
	}
}
