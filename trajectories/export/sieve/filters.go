package sieve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// Reason is why an attempt was dropped: a kind, and after ": " the particular.
type Reason string

func because(kind, particular string) Reason {
	if particular == "" {
		return Reason(kind)
	}
	return Reason(kind + ": " + particular)
}

// filterGlance goes by what is known without the transcript.
func (s *Sieve) filterGlance(it *export.Item) Reason {
	c := &s.cfg
	verdict := orNone(it.Verdict)
	switch {
	case len(c.Repos) > 0 && !slices.ContainsFunc(c.Repos, func(r string) bool { return strings.EqualFold(r, it.Repo) }):
		return because("repository", orNone(it.Repo))
	case len(c.Verdicts) > 0 && !slices.Contains(c.Verdicts, verdict):
		return because("verdict", verdict)
	case c.NoFlagged:
		for _, flag := range it.Flags {
			if len(c.Flags) == 0 || slices.Contains(c.Flags, flag) {
				return because("flag", flag)
			}
		}
	}
	return ""
}

// filter goes by the transcript.
func (s *Sieve) filter(it *export.Item) Reason {
	c := &s.cfg
	name := it.Header.ModelName
	if len(c.Models) > 0 && !slices.ContainsFunc(c.Models, func(p string) bool { return modelFits(p, name) }) {
		return because("model", orNone(name))
	}
	if class := classOf(it); !s.classPasses(it, class) {
		return because("outcome class", class)
	}
	steps, formatErrors := it.Steps(), formatErrorsOf(it)
	switch {
	case steps < c.MinSteps:
		return because("min steps", "")
	case c.MaxSteps > 0 && steps > c.MaxSteps:
		return because("max steps", "")
	case c.MaxFormatErrors != nil && formatErrors > *c.MaxFormatErrors:
		return because("format errors", "")
	}
	if c.Tokenizer != "" {
		it.Tokens = s.count(it)
	}
	if c.MaxTokens > 0 && it.Tokens > c.MaxTokens {
		return because("max tokens", "")
	}
	return ""
}

// classOf is the class of an attempt's outcome, or none.
func classOf(it *export.Item) string {
	if it.Outcome == nil {
		return none
	}
	return orNone(string(it.Outcome.Class))
}

// classPasses also knows what trains nobody who did not ask for it: attempts
// that are no result of their instance. Files of other agents often do not say
// how they ended.
func (s *Sieve) classPasses(it *export.Item, class string) bool {
	switch {
	case len(s.cfg.Classes) > 0:
		return slices.Contains(s.cfg.Classes, class)
	case !s.cfg.Training:
		return true
	case class == none:
		return it.Import != nil
	default:
		return trajectories.Class(class).Counts()
	}
}

// formatErrorsOf is how often the model was told how to write actions.
func formatErrorsOf(it *export.Item) int {
	n := 0
	for _, e := range it.Entries {
		if e.Cause == trajectories.CauseFormatError {
			n++
		}
	}
	return n
}

// count is how long the conversation is with what rows hold beside it.
func (s *Sieve) count(it *export.Item) int64 {
	var n int64
	for _, tool := range it.Header.Tools {
		n += model.EstimateText(tool.Name) + model.EstimateText(tool.Description) + model.EstimateText(string(tool.Parameters))
	}
	one := make([]model.Message, 1)
	for _, e := range it.Entries {
		one[0] = e.Message.Message
		n += model.EstimateTokens(one)
		if s.cfg.Reasoning {
			n += model.EstimateText(e.Reasoning)
		}
	}
	return n
}

// modelFits compares a name, or the part after its last slash, with a pattern
// in which * is any text.
func modelFits(pattern, name string) bool {
	short := name[strings.LastIndexByte(name, '/')+1:]
	return wild(pattern, name) || wild(pattern, short)
}

func wild(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, p := range parts[1:last] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[last])
}

func orNone(s string) string { return cmp.Or(s, none) }

// nameOf names an attempt in the report.
func nameOf(it *export.Item) string {
	if it.Journal != "" {
		return it.Journal
	}
	return fmt.Sprintf("%s/%d", it.InstanceID, it.Attempt)
}
