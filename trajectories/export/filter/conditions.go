package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
)

// DropReason is why an attempt was dropped: a kind, optionally followed by ": " and
// details.
type DropReason string

func dropReason(kind, details string) DropReason {
	if details == "" {
		return DropReason(kind)
	}
	return DropReason(kind + ": " + details)
}

// filterMetadata applies filters that do not need the transcript.
func (f *Filter) filterMetadata(it *export.Item) DropReason {
	c := &f.cfg
	verdict := orNone(it.Verdict)
	switch {
	case len(c.Repos) > 0 && !slices.ContainsFunc(c.Repos, func(r string) bool { return strings.EqualFold(r, it.Repo) }):
		return dropReason("repository", orNone(it.Repo))
	case len(c.Verdicts) > 0 && !slices.Contains(c.Verdicts, verdict):
		return dropReason("verdict", verdict)
	case c.NoFlagged:
		for _, flag := range it.Flags {
			if len(c.Flags) == 0 || slices.Contains(c.Flags, flag) {
				return dropReason("flag", flag)
			}
		}
	}
	return ""
}

// filterTranscript applies filters that need the transcript.
func (f *Filter) filterTranscript(it *export.Item) DropReason {
	c := &f.cfg
	name := it.Header.ModelName
	if len(c.Models) > 0 && !slices.ContainsFunc(c.Models, func(p string) bool { return modelMatches(p, name) }) {
		return dropReason("model", orNone(name))
	}
	if class := classOf(it); !f.acceptsClass(it, class) {
		return dropReason("outcome class", class)
	}
	steps, formatErrors := it.Steps(), formatErrorsOf(it)
	switch {
	case steps < c.MinSteps:
		return dropReason("min steps", "")
	case c.MaxSteps > 0 && steps > c.MaxSteps:
		return dropReason("max steps", "")
	case c.MaxFormatErrors != nil && formatErrors > *c.MaxFormatErrors:
		return dropReason("format errors", "")
	}
	if c.Tokenizer != "" {
		it.Tokens = f.countTokens(it)
	}
	if c.MaxTokens > 0 && it.Tokens > c.MaxTokens {
		return dropReason("max tokens", "")
	}
	return ""
}

// classOf returns the outcome class of an attempt, or none.
func classOf(it *export.Item) string {
	if it.Outcome == nil {
		return none
	}
	return orNone(string(it.Outcome.Class))
}

// acceptsClass reports whether an outcome class is accepted. Training data by default
// has only attempts that count, and imported attempts without an outcome.
func (f *Filter) acceptsClass(it *export.Item, class string) bool {
	switch {
	case len(f.cfg.Classes) > 0:
		return slices.Contains(f.cfg.Classes, class)
	case !f.cfg.Training:
		return true
	case class == none:
		return it.Import != nil
	default:
		return trajectories.Class(class).Counts()
	}
}

// formatErrorsOf returns the number of format errors.
func formatErrorsOf(it *export.Item) int {
	n := 0
	for _, e := range it.Entries {
		if e.Cause == trajectories.CauseFormatError {
			n++
		}
	}
	return n
}

// countTokens estimates the length of the conversation with the tools.
func (f *Filter) countTokens(it *export.Item) int64 {
	var n int64
	for _, tool := range it.Header.Tools {
		n += model.EstimateTextTokens(tool.Name) + model.EstimateTextTokens(tool.Description) + model.EstimateTextTokens(string(tool.Parameters))
	}
	messages := make([]model.Message, 1)
	for _, e := range it.Entries {
		messages[0] = e.Message.Message
		n += model.EstimateTokens(messages)
		if f.cfg.Reasoning {
			n += model.EstimateTextTokens(e.Reasoning)
		}
	}
	return n
}

// modelMatches matches a model name, with or without its prefix, against a pattern in
// which * matches any text.
func modelMatches(pattern, name string) bool {
	short := name[strings.LastIndexByte(name, '/')+1:]
	return wildcardMatches(pattern, name) || wildcardMatches(pattern, short)
}

func wildcardMatches(pattern, s string) bool {
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

// nameOf returns the name of an attempt for the report.
func nameOf(it *export.Item) string {
	if it.Journal != "" {
		return it.Journal
	}
	return fmt.Sprintf("%s/%d", it.InstanceID, it.Attempt)
}
