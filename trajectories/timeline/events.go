package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/trajectories"
)

// noteParts returns the notes. Of an abandoned step, only problems are shown. The tool
// requests of a command that did not finish are shown where the session ended.
func noteParts(a *trajectories.Attempt) []*Step {
	var parts, requests []*Step
	for _, n := range a.Notes {
		p := &Step{record: n.ID}
		switch data, _ := trajectories.Decode(n.Record); d := data.(type) { // the attempt has decoded it too
		case trajectories.ToolCall:
			p.record, p.Items = math.MaxInt, toolItems(&d)
			requests = append(requests, p)
		case trajectories.Resume:
			for _, request := range requests {
				request.record = n.ID
				request.Items = slices.DeleteFunc(request.Items, func(item *Item) bool { return item.Kind == Output })
			}
			parts, requests = append(parts, requests...), nil
			p.add(Note, "", "the attempt was interrupted and resumed")
		default:
			p.add(describeNote(d))
		}
		if n.Abandoned {
			p.Items, p.Failed = slices.DeleteFunc(p.Items, func(item *Item) bool { return item.Kind != Problem }), false
		}
		if n.Type != trajectories.TypeTool {
			parts = append(parts, p)
		}
	}
	if a.Outcome != nil {
		parts = append(parts, requests...)
	}
	return parts
}

// describeNote describes the data of a record that is not part of the conversation. The
// description is empty for records that are not shown.
func describeNote(data any) (kind Kind, label, description string) {
	switch d := data.(type) {
	case trajectories.Scrub:
		if !d.OK {
			return Problem, "", strings.TrimSuffix("scrub: the repository may contain more than HEAD and its history: "+d.Error, ": ")
		}
		return Note, "", fmt.Sprintf("scrub: the repository contains only HEAD and its history "+
			"(%d commits; %d objects and %d refs removed)", d.Commits, d.ObjectsRemoved, d.RefsRemoved)
	case trajectories.PatchCheck:
		switch size := text.Count(d.Bytes, "byte"); {
		case d.Error != "":
			return Problem, "", "check: cannot check whether the submission applies: " + d.Error
		case !d.Applies:
			return Problem, "", "check: the submission of " + size + " does not apply: " + d.GitError
		default:
			return Note, "", "check: the submission of " + size + " applies to the files at the start"
		}
	case trajectories.Replay:
		if d.Match == "diverged" {
			return Problem, "", "a replayed command had a different result: " + d.Difference
		}
	case trajectories.CommandDecision:
		switch d.Action {
		case "":
		case trajectories.Allow:
			text := decisionText(d.Decision)
			if d.Edited != "" {
				text += "; the user changed the command, which the model wrote as:\n" + d.Command
			}
			return Note, "", text
		default:
			return Problem, "", decisionText(d.Decision)
		}
	case trajectories.Summary:
		if d.Error != "" {
			return Problem, "", "summary: the model call failed: " + d.Error
		}
	case trajectories.Compaction:
		return Note, "", compactionText(d)
	case trajectories.Limits:
		return Note, "", "limits: raised by the user: " + limitsText(d)
	case trajectories.ModelChange:
		return Note, "", "model: switched by the user to " + d.Name
	}
	return Note, "", ""
}

func importText(i *trajectories.Import) string {
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
	s += fmt.Sprintf("about %s tokens instead of %s", unit.Count(c.TokensAfter), unit.Count(c.TokensBefore))
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
		cost = "up to " + unit.Money(l.Cost)
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

// endStep returns the step about the diff and the outcome; nil if there is neither.
func endStep(a *trajectories.Attempt) *Step {
	if a.Diff == nil && a.Outcome == nil {
		return nil
	}
	s := &Step{Name: EndStep}
	if a.Diff != nil {
		s.addDiff(a.Diff)
	}
	if a.Outcome != nil {
		s.addOutcome(a.Outcome)
	}
	return s
}

func (s *Step) addDiff(d *trajectories.Diff) {
	switch {
	case d.Error != "":
		s.add(Problem, "", "diff: not available: "+d.Error)
	case d.VerifyError != "":
		s.add(Problem, "", "diff: does not reproduce the working tree: "+d.VerifyError)
	default:
		verified := ""
		if d.Exact {
			verified = ", verified against the files at the start"
		}
		s.add(Note, "", "diff: the working tree has "+text.Count(len(d.Patch), "byte")+" of changes"+verified)
	}
	if d.OmittedCount > 0 {
		names := make([]string, len(d.Omitted))
		for i, name := range d.Omitted {
			names[i] = name
			if i < len(d.OmittedReasons) {
				names[i] += " (" + d.OmittedReasons[i] + ")"
			}
		}
		s.add(Note, "", fmt.Sprintf("diff: %d files left out: %s", d.OmittedCount, strings.Join(names, ", ")))
	}
}

func (s *Step) addOutcome(o *trajectories.Outcome) {
	kind := Note
	if !o.Class.IsResult() {
		kind = Problem
	}
	s.add(kind, "", strings.TrimSuffix("outcome: "+string(o.Class)+", "+o.ExitStatus, ", "))
	switch {
	case o.Class.IsResult() && len(o.Submission) == 0:
		s.add(Problem, "", "the patch is empty")
		s.Failed = false // an attempt with an empty patch is still a result
	case len(o.Submission) > 0:
		s.add(Note, "", "a patch of "+text.Count(len(o.Submission), "byte"))
	}
	if o.DiffersFromWorktree {
		s.add(Note, "", "the submission differs from the working tree")
	}
	if o.Error != "" {
		s.add(Problem, "error", o.Error)
	}
	s.add(Note, "", o.Hint)
	if o.NetworkProof != "" {
		s.add(Note, "", "network isolation: "+o.NetworkProof)
	}
	for _, w := range o.Warnings {
		s.add(Note, "", "warning: "+w)
	}
	if o.Stack != "" {
		s.add(Message, "stack", o.Stack)
	}
}
