package timeline

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/trajectories"
)

// describeEvent describes a record that is not part of the conversation. The description
// is empty for records that are not shown, including those that cannot be decoded.
func describeEvent(r trajectories.Record) (kind Kind, description string) {
	kind = Note
	problem := func(s string) { kind, description = Problem, s }
	note := func(s string) { description = s }
	switch r.Type {
	case trajectories.TypeImport:
		_ = decode(r, func(_ trajectories.Record, i trajectories.Import) { note(importText(i)) })
	case trajectories.TypeScrub:
		_ = decode(r, func(_ trajectories.Record, s trajectories.Scrub) {
			note(fmt.Sprintf("scrub: the repository contains only HEAD and its history "+
				"(%d commits; %d objects and %d refs removed)", s.Commits, s.ObjectsRemoved, s.RefsRemoved))
			if !s.OK {
				problem(strings.TrimSuffix("scrub: the repository may contain more than HEAD and its history: "+s.Error, ": "))
			}
		})
	case trajectories.TypePatchCheck:
		_ = decode(r, func(_ trajectories.Record, c trajectories.PatchCheck) {
			switch size := text.Count(c.Bytes, "byte"); {
			case c.Error != "":
				problem("check: cannot check whether the submission applies: " + c.Error)
			case !c.Applies:
				problem("check: the submission of " + size + " does not apply: " + c.GitError)
			default:
				note("check: the submission of " + size + " applies to the files at the start")
			}
		})
	case trajectories.TypeReplay:
		_ = decode(r, func(_ trajectories.Record, x trajectories.Replay) {
			if x.Match == "diverged" {
				problem("a replayed command had a different result: " + x.Difference)
			}
		})
	case trajectories.TypeDecision:
		_ = decode(r, func(_ trajectories.Record, d trajectories.CommandDecision) {
			if d.Action != trajectories.Allow && d.Action != "" {
				problem(decisionText(d.Decision))
			} else if d.Action != "" {
				note(decisionText(d.Decision))
			}
		})
	case trajectories.TypeSummary:
		_ = decode(r, func(_ trajectories.Record, c Call) {
			if c.Error != "" {
				problem("summary: the model call failed: " + c.Error)
			}
		})
	case trajectories.TypeCompaction:
		_ = decode(r, func(_ trajectories.Record, c trajectories.Compaction) { note(compactionText(c)) })
	case trajectories.TypeLimits:
		_ = decode(r, func(_ trajectories.Record, l trajectories.Limits) {
			note("limits: raised by the user: " + limitsText(l))
		})
	case trajectories.TypeModel:
		_ = decode(r, func(_ trajectories.Record, m trajectories.ModelChange) {
			note("model: switched by the user to " + m.Name)
		})
	}
	return kind, description
}

func importText(i trajectories.Import) string {
	text := "read from " + i.File + " (format " + i.Format + ")"
	if i.Agent != "" {
		text += ", written by " + strings.TrimSpace(i.Agent+" "+i.AgentVersion)
	}
	if len(i.Losses) > 0 {
		text += "; lost: " + strings.Join(i.Losses, "; ")
	}
	return text
}

// compactionText describes a compaction and shows its replacements.
func compactionText(c trajectories.Compaction) string {
	s := fmt.Sprintf("compaction (%s): the model is now shown %s instead of %d, ",
		c.Policy, text.Count(c.MessagesAfter, "message"), c.MessagesBefore)
	s += fmt.Sprintf("about %s tokens instead of %s", FormatCount(c.TokensAfter), FormatCount(c.TokensBefore))
	if c.Fallback != "" {
		s += "; truncated instead of summarized: " + c.Fallback
	}
	for _, r := range c.Replaced {
		s += "\n" + r.Message.Content
	}
	return s
}

func limitsText(l trajectories.Limits) string {
	steps, cost := "no step limit", "no cost limit"
	if l.Steps > 0 {
		steps = "up to " + text.Count(l.Steps, "step")
	}
	if l.Cost > 0 {
		cost = fmt.Sprintf("up to $%.2f", l.Cost)
	}
	return steps + ", " + cost
}

// decisionText describes a decision about a command and its previous decisions.
func decisionText(d trajectories.Decision) string {
	text := "decision: " + singleDecisionText(d)
	for _, previous := range d.Previous {
		text += "; after " + singleDecisionText(previous)
	}
	return text
}

func singleDecisionText(d trajectories.Decision) string {
	text := string(d.Action)
	if by := strings.TrimSpace(d.By + " " + d.Rule); by != "" {
		text += ", by " + by
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// addDiff adds notes about the working tree diff to t.End.
func (t *Timeline) addDiff(r trajectories.Record, d trajectories.Diff) {
	t.Diff = &d
	s := t.end()
	switch {
	case d.Error != "":
		s.add(r.ID, Problem, "", "diff: not available: "+d.Error)
	case d.VerifyError != "":
		s.add(r.ID, Problem, "", "diff: does not reproduce the working tree: "+d.VerifyError)
	default:
		verified := ""
		if d.Exact {
			verified = ", verified against the files at the start"
		}
		s.add(r.ID, Note, "", "diff: the working tree has "+text.Count(len(d.Patch), "byte")+" of changes"+verified)
	}
	if d.OmittedCount > 0 {
		names := make([]string, len(d.Omitted))
		for i, name := range d.Omitted {
			names[i] = name
			if i < len(d.OmittedReasons) {
				names[i] += " (" + d.OmittedReasons[i] + ")"
			}
		}
		s.add(r.ID, Note, "", fmt.Sprintf("diff: %d files left out: %s", d.OmittedCount, strings.Join(names, ", ")))
	}
}

// addOutcome adds the outcome of the attempt to t.End.
func (t *Timeline) addOutcome(r trajectories.Record, o trajectories.Outcome) {
	t.flushTools(r)
	t.Outcome, t.call = &o, nil
	s := t.end()
	kind := Note
	if !o.Class.IsResult() {
		kind = Problem
	}
	s.add(r.ID, kind, "", strings.TrimSuffix("outcome: "+string(o.Class)+", "+o.ExitStatus, ", "))
	switch {
	case o.Class.IsResult() && len(o.Submission) == 0:
		s.add(r.ID, Problem, "", "the patch is empty")
		s.Failed = false // an attempt with an empty patch is still a result
	case len(o.Submission) > 0:
		s.add(r.ID, Note, "", "a patch of "+text.Count(len(o.Submission), "byte"))
	}
	if o.DiffersFromWorktree {
		s.add(r.ID, Note, "", "the submission differs from the working tree")
	}
	if o.Error != "" {
		s.add(r.ID, Problem, "error", o.Error)
	}
	s.add(r.ID, Note, "", o.Hint)
	if o.NetworkProof != "" {
		s.add(r.ID, Note, "", "network isolation: "+o.NetworkProof)
	}
	for _, w := range o.Warnings {
		s.add(r.ID, Note, "", "warning: "+w)
	}
	if o.Stack != "" {
		s.add(r.ID, Message, "stack", o.Stack)
	}
}

// resultItems returns the items about the result and the output of a command.
func resultItems(x *trajectories.Execution) []*Item {
	kind := Note
	if x.ExitCode != 0 || x.TimedOut || x.Exception != "" {
		kind = Problem
	}
	items := []*Item{{Kind: kind, Text: ResultLine(x)}}
	output := string(x.Output)
	if x.Truncated && 0 < x.Head && x.Head < len(output) {
		items = append(items, &Item{Kind: Output, Text: output[:x.Head]},
			&Item{Kind: Note, Text: fmt.Sprintf("... %s bytes left out ...", FormatCount(x.Bytes-int64(len(output))))})
		output = output[x.Head:]
	}
	if output != "" {
		items = append(items, &Item{Kind: Output, Text: output})
	}
	if x.Exception != "" {
		items = append(items, &Item{Kind: Problem, Label: "exception", Text: x.Exception})
	}
	return items
}

// maxRequestLabel bounds the command line in the label of a tool request, in characters.
const maxRequestLabel = 300

// toolItems returns the items about a tool request.
func toolItems(c *trajectories.ToolCall) []*Item {
	commandLine := text.ClipRunes(strings.Join(append([]string{"mini-tool", c.Name}, c.Args...), " "), maxRequestLabel)
	kind := Note
	if c.ExitCode != 0 {
		kind = Problem
	}
	result := fmt.Sprintf("exit %d, %s, %s bytes", c.ExitCode, formatSeconds(c.Duration), FormatCount(int64(len(c.Output))))
	items := []*Item{{Kind: kind, Label: "request: " + commandLine, Text: result}}
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

// childItem returns an item about a child. The steps of the child are in its own
// journal.
func childItem(c trajectories.ChildResult) *Item {
	item := &Item{Kind: Note, Text: c.Task}
	if c.Problem != "" {
		item.Kind, item.Text = Problem, item.Text+"\n"+c.Problem
	}
	cost := "-"
	if c.Cost > 0 {
		cost = FormatCost(float64(c.Cost))
	}
	item.Label = fmt.Sprintf("child %d: %s, %s, %s", c.Child, c.ExitStatus, text.Count(c.Steps, "step"), cost)
	if c.Journal != "" {
		item.Label += ", " + c.Journal
	}
	return item
}
