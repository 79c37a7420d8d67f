package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// TokenReport says how the prompts of a run continue the tokens before. A prompt that does not, because the server
// made other tokens of an earlier reply than those that it sampled, cannot be trained on in one sequence with them.
type TokenReport struct {
	Run      string         `json:"run"`
	Attempts []TokenAttempt `json:"attempts"`
	// Unreadable lists errors of journals.
	Unreadable []string `json:"unreadable,omitempty"`
}

// TokenAttempt is about an attempt, or about a subagent of it.
type TokenAttempt struct {
	InstanceID string `json:"instance_id"`
	Attempt    int    `json:"attempt"`
	Subagent   int    `json:"subagent,omitempty"` // its number
	// Replies counts those with token ids, Missing the others. Continued counts the prompts after the first that
	// begin with all tokens of the prompt and the reply before.
	Replies   int `json:"replies"`
	Missing   int `json:"without_tokens,omitempty"`
	Continued int `json:"continued"`
	// Drifts are the other prompts, in order.
	Drifts []Drift `json:"drifts,omitempty"`
}

// Drift is a prompt that does not continue the tokens before.
type Drift struct {
	Turn int `json:"turn"` // of the prompt, from 2
	// Token is the number of tokens that are the same. InReply is the place of the first other one in the reply
	// before, from 0; nil if it is in the prompt of that reply. Text is the text of the reply around it, with ▸ before
	// that token.
	Token   int    `json:"token"`
	InReply *int   `json:"in_reply,omitempty"`
	Text    string `json:"text,omitempty"`
}

// NewTokenReport reads the journals of a run.
func NewTokenReport(run *runs.Run) TokenReport {
	r := TokenReport{Run: run.Dir, Attempts: []TokenAttempt{}}
	omit := trajectories.ForTraining &^ trajectories.OmitTokens
	for _, in := range run.Instances {
		for _, a := range in.Attempts {
			r.add(omit, a.Journal, TokenAttempt{InstanceID: in.ID, Attempt: a.Number})
			children := trajectories.ChildJournals(a.Journal)
			var numbers []int
			for n := range children {
				numbers = append(numbers, n)
			}
			slices.Sort(numbers)
			for _, n := range numbers {
				r.add(omit, children[n], TokenAttempt{InstanceID: in.ID, Attempt: a.Number, Subagent: n})
			}
		}
	}
	return r
}

// add adds the conversation of a journal.
func (r *TokenReport) add(omit trajectories.Omit, journal string, t TokenAttempt) {
	a, err := omit.Fold(trajectories.Read(journal))
	if err != nil {
		r.Unreadable = append(r.Unreadable, err.Error())
	}
	t.Add(a)
	r.Attempts = append(r.Attempts, t)
}

// Add counts the replies of a conversation.
func (t *TokenAttempt) Add(a *trajectories.Attempt) {
	var before *trajectories.Tokens
	turn := 0
	for _, e := range a.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		turn++
		if e.Call == nil || e.Call.Tokens == nil {
			t.Missing++
			before = nil
			continue
		}
		t.Replies++
		switch n, all := e.Call.Tokens.Continues(before); {
		case all:
			t.Continued++
		case before != nil:
			t.Drifts = append(t.Drifts, newDrift(turn, n, before))
		}
		before = e.Call.Tokens
	}
}

// String says how many prompts continue the tokens before.
func (t *TokenAttempt) String() string {
	s := text.Count(t.Replies, "reply") + " with token ids"
	if n := t.Continued + len(t.Drifts); n > 0 {
		s = fmt.Sprintf("%d of %s %s the tokens before", t.Continued, text.Count(n, "prompt"), text.Verb(t.Continued, "continues", "continue"))
	}
	if t.Missing > 0 {
		s += "; " + text.Count(t.Missing, "reply") + " without token ids"
	}
	return s
}

// driftContext is the number of tokens around the first other one whose text a Drift has.
const driftContext = 6

// newDrift describes a prompt of which n tokens are those of the call before.
func newDrift(turn, n int, before *trajectories.Tokens) Drift {
	d := Drift{Turn: turn, Token: n}
	place := n - len(before.Prompt())
	if place < 0 {
		return d
	}
	d.InReply = &place
	if texts := before.Texts; place < len(texts) {
		d.Text = strings.Join(texts[max(0, place-driftContext):place], "") + "▸" + strings.Join(texts[place:min(len(texts), place+driftContext)], "")
	}
	return d
}

// maxDrifts bounds the listed prompts; the JSON form has all.
const maxDrifts = 20

// Doc returns the report for readers.
func (r TokenReport) Doc() *doc.Doc {
	d := &doc.Doc{}
	replies, missing, continued, drifts := 0, 0, 0, 0
	rows := [][]string{{"attempt", "prompt of turn", "first other token", "text"}}
	for _, a := range r.Attempts {
		replies, missing, continued, drifts = replies+a.Replies, missing+a.Missing, continued+a.Continued, drifts+len(a.Drifts)
		name := fmt.Sprintf("%s#%d", a.InstanceID, a.Attempt)
		if a.Subagent > 0 {
			name += fmt.Sprintf(" subagent %d", a.Subagent)
		}
		for _, drift := range a.Drifts {
			place := fmt.Sprintf("%d, in the prompt of turn %d", drift.Token, drift.Turn-1)
			if drift.InReply != nil {
				place = fmt.Sprintf("%d, token %d of the reply of turn %d", drift.Token, *drift.InReply, drift.Turn-1)
			}
			rows = append(rows, []string{name, fmt.Sprint(drift.Turn), place, text.OneLine(drift.Text)})
		}
	}
	if replies == 0 {
		d.Paragraph("no token ids are recorded: run with --tokens, and a server that returns them, such as vLLM", 0, 2)
		addUnreadable(d, r.Unreadable)
		return d
	}
	head := fmt.Sprintf("%d of %s %s all tokens before", continued, text.Count(continued+drifts, "prompt"), text.Verb(continued, "continues", "continue"))
	if drifts > 0 {
		head += fmt.Sprintf("; %d %s not, and %s a new segment", drifts, text.Verb(drifts, "does", "do"), text.Verb(drifts, "begins", "begin"))
	}
	d.Paragraph(head, 0, 2)
	d.Paragraph(fmt.Sprintf("%s with token ids in %s", text.Count(replies, "reply"), text.Count(len(r.Attempts), "conversation")), 0, 1)
	if missing > 0 {
		d.Paragraph(text.Count(missing, "reply")+" without token ids", 0, 1)
	}
	if len(rows) > 1 {
		d.Blank()
		d.Table("irls", rows[:min(len(rows), maxDrifts+1)])
	}
	if more := len(rows) - 1 - maxDrifts; more > 0 {
		d.Line(0, "... and %d more; --json shows all", more)
	}
	addUnreadable(d, r.Unreadable)
	return d
}
