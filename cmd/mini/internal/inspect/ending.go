package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// others puts the records that are no conversation where they stand in it.
func (t *Trajectory) others(ts *trajectories.Transcript) {
	for _, r := range ts.Others {
		kind, text := otherText(r)
		if text == "" {
			continue
		}
		i := sort.Search(len(t.Pages), func(i int) bool { return t.Pages[i].first > r.ID })
		p := t.Pages[max(0, i-1)]
		p.add(kind, "", text)
		if kind == Alarm {
			p.Failed = true
		}
	}
}

// otherText says what a record is; nothing where it is not for people.
func otherText(r trajectories.Record) (Kind, string) {
	switch r.Type {
	case trajectories.TypeScrub:
		var s trajectories.Scrub
		if json.Unmarshal(r.Data, &s) != nil {
			return Note, ""
		}
		if !s.OK {
			return Alarm, strings.TrimSuffix("scrub: the repository may hold more than its HEAD: "+s.Error, ": ")
		}
		return Note, fmt.Sprintf("scrub: the repository holds nothing but HEAD and its history (%d commits; %d objects and %d refs removed)", s.Commits, s.ObjectsRemoved, s.RefsRemoved)
	case trajectories.TypeCheck:
		var c trajectories.Check
		if json.Unmarshal(r.Data, &c) != nil {
			return Note, ""
		}
		switch {
		case c.Error != "":
			return Alarm, "check: whether the submission applies could not be found out: " + c.Error
		case !c.Applies:
			return Alarm, fmt.Sprintf("check: the submission of %s does not apply: %s", report.Count(c.Bytes, "byte"), c.Refusal)
		}
		return Note, fmt.Sprintf("check: the submission of %s applies to the files of the start", report.Count(c.Bytes, "byte"))
	case trajectories.TypeResume:
		return Note, "the attempt was interrupted, and went on"
	case trajectories.TypeReplay:
		var x trajectories.Replay
		if json.Unmarshal(r.Data, &x) == nil && x.Match == "diverged" {
			return Alarm, "a command of the past did something else when it was run again: " + x.Difference
		}
		return Note, ""
	case trajectories.TypeDecision:
		var d trajectories.Decision
		if json.Unmarshal(r.Data, &d) != nil || d.Action == "" {
			return Note, ""
		}
		return decisionText(d.Ruling)
	case trajectories.TypeSummary:
		if text := summaryText(r); text != "" {
			return Alarm, text
		}
		return Note, ""
	case trajectories.TypeCompaction:
		var c trajectories.Compaction
		if json.Unmarshal(r.Data, &c) != nil {
			return Note, ""
		}
		return Note, compactionText(c)
	case trajectories.TypeLimits:
		var l trajectories.Limits
		if json.Unmarshal(r.Data, &l) != nil {
			return Note, ""
		}
		return Note, "limits: the user has raised them: " + limitsText(l)
	}
	return Note, ""
}

// summaryText is why there is no summary; nothing where there is one.
func summaryText(r trajectories.Record) string {
	var c trajectories.Call
	if json.Unmarshal(trajectories.Lean(r.Data), &c) != nil || c.Error == "" {
		return ""
	}
	return "summary: the call of the model failed: " + c.Error
}

// compactionText says what the model is shown from here on in place of what.
func compactionText(c trajectories.Compaction) string {
	text := fmt.Sprintf("compaction (%s): from here on the model is shown %s in place of %d, about %s tokens instead of %s",
		c.Policy, report.Count(c.MessagesAfter, "message"), c.MessagesBefore, amount(c.TokensAfter), amount(c.TokensBefore))
	if c.Fallback != "" {
		text += "; extracts stand for summaries: " + c.Fallback
	}
	for _, r := range c.Replaced {
		text += "\n" + r.Message.Content
	}
	return text
}

func limitsText(l trajectories.Limits) string {
	steps, cost := "steps without a limit", "cost without a limit"
	if l.Steps > 0 {
		steps = "up to " + report.Count(l.Steps, "step")
	}
	if l.Cost > 0 {
		cost = fmt.Sprintf("up to $%.2f", l.Cost)
	}
	return steps + ", " + cost
}

// decisionText says who let a command run, or did not, and who had passed the
// question on.
func decisionText(d trajectories.Ruling) (Kind, string) {
	text := "decision: " + rulingText(d)
	for _, b := range d.Before {
		text += "; before that " + rulingText(b)
	}
	if d.Action == trajectories.Allow {
		return Note, text
	}
	return Alarm, text
}

func rulingText(d trajectories.Ruling) string {
	text := string(d.Action)
	if by := strings.TrimSpace(d.By + " " + d.Rule); by != "" {
		text += ", by " + by
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// theEnd is the name of the page of the outcome.
const theEnd = "end"

// end adds the page of the outcome.
func (t *Trajectory) end(ts *trajectories.Transcript) {
	p := &Page{Name: theEnd}
	for _, c := range ts.Failed {
		if c.Error != "" {
			p.add(Alarm, "", "a call of the model failed: "+c.Error)
		}
	}
	if d := ts.Diff; d != nil {
		switch {
		case d.Error != "":
			p.add(Alarm, "", "diff: there is none: "+d.Error)
		case d.Problem != "":
			p.add(Alarm, "", "diff: it does not give the working tree: "+d.Problem)
		default:
			text := fmt.Sprintf("diff: the working tree has %s of changes", report.Count(len(d.Patch), "byte"))
			if d.Exact {
				text += ", proved on the files of the start"
			}
			p.add(Note, "", text)
		}
		if d.OmittedCount > 0 {
			names := slices.Clone(d.Omitted)
			for i := range min(len(names), len(d.OmittedReasons)) {
				names[i] += " (" + d.OmittedReasons[i] + ")"
			}
			p.add(Note, "", fmt.Sprintf("diff: left out, %d in all: %s", d.OmittedCount, strings.Join(names, ", ")))
		}
	}
	if t.Problem != "" {
		p.add(Alarm, "", "the file is damaged, and this is all that can be read: "+t.Problem)
	}
	if o := ts.Outcome; o != nil {
		p.outcome(o)
	} else if len(p.Sections) == 0 {
		return
	}
	p.Failed = p.Failed || t.Problem != ""
	t.Pages = append(t.Pages, p)
}

func (p *Page) outcome(o *trajectories.Outcome) {
	kind := Note
	if !o.Class.Counts() {
		kind, p.Failed = Alarm, true
	}
	text := "outcome: " + string(o.Class)
	if o.ExitStatus != "" {
		text += ", " + o.ExitStatus
	}
	p.add(kind, "", text)
	facts := []string{report.Count(o.Steps, "step")}
	if n := o.Usage.Prompt + o.Usage.Completion; n > 0 {
		facts = append(facts, amount(n)+" tokens")
	}
	facts = append(facts, report.Spent(o.Cost, o.Usage.Unpriced == 0))
	if took := o.Took(); took > 0 {
		facts = append(facts, clock(took))
	}
	if !o.End.IsZero() {
		facts = append(facts, "ended "+o.End.Local().Format(time.DateTime))
	}
	p.Facts = facts
	switch {
	case o.Class.Counts() && len(o.Submission) == 0:
		p.add(Alarm, "", "the patch is empty")
	case len(o.Submission) > 0:
		p.add(Note, "", fmt.Sprintf("a patch of %s; d shows it", report.Count(len(o.Submission), "byte")))
	}
	if o.Differs {
		p.add(Note, "", "the submission gives other files than the working tree had")
	}
	if o.Error != "" {
		p.Failed = true
		p.add(Alarm, "error", o.Error)
	}
	if o.Hint != "" {
		p.add(Note, "", o.Hint)
	}
	for _, w := range o.Warnings {
		p.add(Note, "", "warning: "+w)
	}
	p.add(Plain, labelIf("stack", o.Stack), o.Stack)
}
