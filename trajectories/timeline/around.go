package timeline

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// around says what a record is that is no part of the conversation; nothing where
// it is not for people.
func around(r trajectories.Record) (kind Kind, said string) {
	kind = Note
	alarm := func(s string) { kind, said = Alarm, s }
	note := func(s string) { said = s }
	switch r.Type {
	case trajectories.TypeImport:
		_ = with(r, func(_ trajectories.Record, i trajectories.Import) { note(importText(i)) }) // else nothing is shown
	case trajectories.TypeScrub:
		_ = with(r, func(_ trajectories.Record, s trajectories.Scrub) {
			note(fmt.Sprintf("scrub: the repository holds nothing but HEAD and its history "+
				"(%d commits; %d objects and %d refs removed)", s.Commits, s.ObjectsRemoved, s.RefsRemoved))
			if !s.OK {
				alarm(strings.TrimSuffix("scrub: the repository may hold more than its HEAD: "+s.Error, ": "))
			}
		})
	case trajectories.TypeCheck:
		_ = with(r, func(_ trajectories.Record, c trajectories.Check) {
			switch size := text.Count(c.Bytes, "byte"); {
			case c.Error != "":
				alarm("check: whether the submission applies could not be found out: " + c.Error)
			case !c.Applies:
				alarm("check: the submission of " + size + " does not apply: " + c.Refusal)
			default:
				note("check: the submission of " + size + " applies to the files of the start")
			}
		})
	case trajectories.TypeReplay:
		_ = with(r, func(_ trajectories.Record, x trajectories.Replay) {
			if x.Match == "diverged" {
				alarm("a command of the past did something else when it was run again: " + x.Difference)
			}
		})
	case trajectories.TypeDecision:
		_ = with(r, func(_ trajectories.Record, d trajectories.Decision) {
			if d.Action != trajectories.Allow && d.Action != "" {
				alarm(decisionText(d.Ruling))
			} else if d.Action != "" {
				note(decisionText(d.Ruling))
			}
		})
	case trajectories.TypeSummary:
		_ = with(r, func(_ trajectories.Record, c call) {
			if c.Error != "" {
				alarm("summary: the call of the model failed: " + c.Error)
			}
		})
	case trajectories.TypeCompaction:
		_ = with(r, func(_ trajectories.Record, c trajectories.Compaction) { note(compactionText(c)) })
	case trajectories.TypeLimits:
		_ = with(r, func(_ trajectories.Record, l trajectories.Limits) {
			note("limits: the user has raised them: " + limitsText(l))
		})
	}
	return kind, said
}

func importText(i trajectories.Import) string {
	text := "imported from " + i.File + " (" + i.Format + ")"
	if i.Agent != "" {
		text += ", by " + strings.TrimSpace(i.Agent+" "+i.AgentVersion)
	}
	if len(i.Lost) > 0 {
		text += "; lost: " + strings.Join(i.Lost, "; ")
	}
	return text
}

// compactionText says what the model is shown from here on, and in place of what.
func compactionText(c trajectories.Compaction) string {
	said := fmt.Sprintf("compaction (%s): from here on the model is shown %s in place of %d, ",
		c.Policy, text.Count(c.MessagesAfter, "message"), c.MessagesBefore)
	said += fmt.Sprintf("about %s tokens instead of %s", Amount(c.TokensAfter), Amount(c.TokensBefore))
	if c.Fallback != "" {
		said += "; extracts stand for summaries: " + c.Fallback
	}
	for _, r := range c.Replaced {
		said += "\n" + r.Message.Content
	}
	return said
}

func limitsText(l trajectories.Limits) string {
	steps, cost := "steps without a limit", "cost without a limit"
	if l.Steps > 0 {
		steps = "up to " + text.Count(l.Steps, "step")
	}
	if l.Cost > 0 {
		cost = fmt.Sprintf("up to $%.2f", l.Cost)
	}
	return steps + ", " + cost
}

// decisionText says who let a command run, or did not, and who had passed the
// question on.
func decisionText(d trajectories.Ruling) string {
	text := "decision: " + rulingText(d)
	for _, b := range d.Before {
		text += "; before that " + rulingText(b)
	}
	return text
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

// diff notes the working tree at the end.
func (t *Timeline) diff(r trajectories.Record, d trajectories.Diff) {
	t.Diff = &d
	s := t.end()
	switch {
	case d.Error != "":
		s.add(r.ID, Alarm, "", "diff: there is none: "+d.Error)
	case d.Problem != "":
		s.add(r.ID, Alarm, "", "diff: it does not give the working tree: "+d.Problem)
	default:
		proved := ""
		if d.Exact {
			proved = ", proved on the files of the start"
		}
		s.add(r.ID, Note, "", "diff: the working tree has "+text.Count(len(d.Patch), "byte")+" of changes"+proved)
	}
	if d.OmittedCount > 0 {
		names := make([]string, len(d.Omitted))
		for i, name := range d.Omitted {
			names[i] = name
			if i < len(d.OmittedReasons) {
				names[i] += " (" + d.OmittedReasons[i] + ")"
			}
		}
		s.add(r.ID, Note, "", fmt.Sprintf("diff: left out, %d in all: %s", d.OmittedCount, strings.Join(names, ", ")))
	}
}

// outcome notes how the attempt ended.
func (t *Timeline) outcome(r trajectories.Record, o trajectories.Outcome) {
	t.flush(r)
	t.Outcome, t.call = &o, nil
	s := t.end()
	kind := Note
	if !o.Class.Counts() {
		kind = Alarm
	}
	s.add(r.ID, kind, "", strings.TrimSuffix("outcome: "+string(o.Class)+", "+o.ExitStatus, ", "))
	switch {
	case o.Class.Counts() && len(o.Submission) == 0:
		s.add(r.ID, Alarm, "", "the patch is empty")
		s.Failed = false // it is a result
	case len(o.Submission) > 0:
		s.add(r.ID, Note, "", "a patch of "+text.Count(len(o.Submission), "byte"))
	}
	if o.Differs {
		s.add(r.ID, Note, "", "the submission gives other files than the working tree had")
	}
	if o.Error != "" {
		s.add(r.ID, Alarm, "error", o.Error)
	}
	s.add(r.ID, Note, "", o.Hint)
	for _, w := range o.Warnings {
		s.add(r.ID, Note, "", "warning: "+w)
	}
	if o.Stack != "" {
		s.add(r.ID, Message, "stack", o.Stack)
	}
}

// resultItems are what a command came to, and its output.
func resultItems(x *trajectories.Execution) []*Item {
	kind := Note
	if x.ExitCode != 0 || x.TimedOut || x.Exception != "" {
		kind = Alarm
	}
	items := []*Item{{Kind: kind, Text: Result(x)}}
	output := string(x.Output)
	if x.Truncated && 0 < x.Head && x.Head < len(output) {
		items = append(items, &Item{Kind: Output, Text: output[:x.Head]},
			&Item{Kind: Note, Text: fmt.Sprintf("... %s bytes left out ...", Amount(x.Bytes-int64(len(output))))})
		output = output[x.Head:]
	}
	if output != "" {
		items = append(items, &Item{Kind: Output, Text: output})
	}
	if x.Exception != "" {
		items = append(items, &Item{Kind: Alarm, Label: "exception", Text: x.Exception})
	}
	return items
}

// maxCall bounds the label of a call, in characters.
const maxCall = 300

// toolItems are a call of mini-tool, and what the model was not shown of it where
// that was no success.
func toolItems(c *trajectories.ToolCall) []*Item {
	name := text.ClipRunes(strings.Join(append([]string{"mini-tool", c.Name}, c.Args...), " "), maxCall)
	kind := Note
	if c.ExitCode != 0 {
		kind = Alarm
	}
	result := fmt.Sprintf("exit %d, %s, %s bytes", c.ExitCode, seconds(c.Duration), Amount(int64(len(c.Output))))
	items := []*Item{{Kind: kind, Label: "asked for " + name, Text: result}}
	if len(c.Errors) > 0 {
		items = append(items, &Item{Kind: Output, Text: string(c.Errors)})
	}
	children := c.Children()
	for _, child := range children {
		items = append(items, childItem(child))
	}
	if len(c.Details) > 0 && len(children) == 0 {
		items = append(items, &Item{Kind: Note, Text: string(c.Details)})
	}
	return items
}

// childItem tells of a child that a command asked for, whose own journal has the
// rest.
func childItem(c trajectories.Child) *Item {
	it := &Item{Kind: Note, Text: c.Task}
	if c.Problem != "" {
		it.Kind, it.Text = Alarm, it.Text+"\n"+c.Problem
	}
	cost := "-"
	if c.Cost > 0 {
		cost = Dollars(float64(c.Cost))
	}
	it.Label = fmt.Sprintf("child %d: %s, %s, %s", c.Child, c.ExitStatus, text.Count(c.Steps, "step"), cost)
	if c.Journal != "" {
		it.Label += ", " + c.Journal
	}
	return it
}
