package browser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/sanitize/attacktest"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

// The text of a trajectory cannot control the terminal: on any page, in the list and as text.
func TestUntrustedTrajectory(t *testing.T) {
	for _, a := range attacktest.Attacks() {
		t.Run(a.Name, func(t *testing.T) {
			e := &Entry{ID: a.Text, Path: "x", Status: a.Text, State: Ended, Verdict: a.Text, Flags: []string{a.Text}, Selected: true}
			tr := &Trajectory{Timeline: uniformTimeline(t, a.Text)}
			m := newTestBrowser(t, 80, 24)
			m.list.found = listing{entries: []*Entry{e, {ID: "b", State: Broken, Problem: a.Text, Selected: true, Path: "b"}}, problems: []string{a.Text}}
			m.list.update()
			checkSanitized(t, m)
			m.list.Reasoning = true
			m.open(e)
			m.handleOpened(openedMsg{entry: e, trajectory: tr})
			for i := range m.reader.pages {
				m.reader.show(i, nil)
				checkSanitized(t, m)
			}
			m.reader.toggle(patchPage, patchItems)
			checkSanitized(t, m)
			m.fail("%s", a.Text)
			checkSanitized(t, m)
			out := m.reader.text(tr.AllSteps(), true)
			if bad := attacktest.FindControl(out, attacktest.LineEnds|attacktest.Colours); bad != "" {
				t.Errorf("the printed text controls the terminal: %s", bad)
			}
		})
	}
}

// uniformTimeline returns a timeline in which every text is the given one.
func uniformTimeline(t *testing.T, text string) *timeline.Timeline {
	t.Helper()
	a, id := &trajectories.Attempt{}, 0
	add := func(typ trajectories.Type, data any) {
		record, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		id++
		if err := a.Add(trajectories.Record{ID: id, Type: typ, Data: record}); err != nil {
			t.Fatal(err)
		}
	}
	reply := trajectories.Message{Cause: trajectories.CauseReply, Actions: []string{text, text}}
	reply.Content, reply.Reasoning = text, text
	add(trajectories.TypeMessage, trajectories.Message{Cause: trajectories.Cause(text), Message: model.Message{Role: model.Role(text), Content: text}})
	add(trajectories.TypeImport, trajectories.Import{File: text, Format: text, Agent: text, Losses: []string{text}})
	add(trajectories.TypeMessage, reply)
	add(trajectories.TypeTool, trajectories.ToolCall{Name: text, Args: []string{text}, Errors: []byte(text), ExitCode: 1})
	add(trajectories.TypeExecution, trajectories.Execution{Command: text, Output: []byte(text), Exception: text})
	add(trajectories.TypeDecision, trajectories.CommandDecision{Command: text, Decision: trajectories.Decision{Action: "deny", By: text, Reason: text}})
	add(trajectories.TypeCompaction, trajectories.Compaction{Policy: text, Fallback: text})
	add(trajectories.TypeScrub, trajectories.Scrub{Error: text})
	add(trajectories.TypeDiff, trajectories.Diff{Patch: []byte(text), VerifyError: text, OmittedCount: 1, Omitted: []string{text}})
	add(trajectories.TypeOutcome, trajectories.Outcome{
		Class: trajectories.Class(text), ExitStatus: text, PartialPatch: []byte(text), Error: text, Hint: text, Stack: text, NetworkProof: text, Warnings: []string{text},
	})
	return timeline.New(a)
}

func checkSanitized(t *testing.T, m *browser) {
	t.Helper()
	shown := m.View().Content
	if bad := attacktest.FindControl(shown, attacktest.LineEnds|attacktest.Colours); bad != "" {
		t.Errorf("the view controls the terminal: %s: %.300q", bad, shown)
	}
	for i, line := range strings.Split(shown, "\n") {
		if w := ansi.StringWidthWc(line); w > m.width || i >= m.height {
			t.Errorf("line %d has %d columns: %q", i, w, line)
		}
	}
}
