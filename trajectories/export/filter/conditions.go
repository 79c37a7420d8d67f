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

// DropReason is the reason why an attempt was dropped: a kind such as "verdict",
// optionally followed by ": " and details.
type DropReason string

func dropReason(kind, details string) DropReason {
	if details == "" {
		return DropReason(kind)
	}
	return DropReason(kind + ": " + details)
}

// filterMetadata applies the filters that do not need the attempt. It returns the
// reason to drop the attempt, or "".
func (f *Filter) filterMetadata(item *export.Item) DropReason {
	c := &f.cfg
	verdict := orNone(item.Verdict)
	switch {
	case len(c.Repos) > 0 && !slices.ContainsFunc(c.Repos, func(r string) bool { return strings.EqualFold(r, item.Repo) }):
		return dropReason("repository", orNone(item.Repo))
	case len(c.Verdicts) > 0 && !slices.Contains(c.Verdicts, verdict):
		return dropReason("verdict", verdict)
	case c.DropFlagged:
		for _, flag := range item.Flags {
			if len(c.Flags) == 0 || slices.Contains(c.Flags, flag) {
				return dropReason("flag", flag)
			}
		}
	}
	return ""
}

// filterAttempt applies the filters that need the attempt. If Config.Tokenizer is
// set, it sets item.Tokens. It returns the reason to drop the attempt, or "".
func (f *Filter) filterAttempt(item *export.Item) DropReason {
	c := &f.cfg
	name := item.Header.ModelName
	if len(c.Models) > 0 && !slices.ContainsFunc(c.Models, func(p string) bool { return modelMatches(p, name) }) {
		return dropReason("model", orNone(name))
	}
	if class := outcomeClass(item); !f.acceptsClass(item, class) {
		return dropReason("outcome class", class)
	}
	steps, formatErrors := item.Steps(), countFormatErrors(item)
	switch {
	case steps < c.MinSteps:
		return dropReason("min steps", "")
	case c.MaxSteps > 0 && steps > c.MaxSteps:
		return dropReason("max steps", "")
	case c.MaxFormatErrors != nil && formatErrors > *c.MaxFormatErrors:
		return dropReason("format errors", "")
	}
	if c.Tokenizer != "" {
		item.Tokens = f.countTokens(item)
	}
	if c.MaxTokens > 0 && item.Tokens > c.MaxTokens {
		return dropReason("max tokens", "")
	}
	return ""
}

// outcomeClass returns the outcome class of an attempt, or none.
func outcomeClass(item *export.Item) string {
	if item.Outcome == nil {
		return none
	}
	return orNone(string(item.Outcome.Class))
}

// acceptsClass reports whether the outcome class of an attempt is accepted. By default,
// training data has only attempts that are results, and imported attempts without an
// outcome.
func (f *Filter) acceptsClass(item *export.Item, class string) bool {
	switch {
	case len(f.cfg.Classes) > 0:
		return slices.Contains(f.cfg.Classes, class)
	case !f.cfg.Training:
		return true
	case class == none:
		return item.Import != nil
	default:
		return trajectories.Class(class).IsResult()
	}
}

// countFormatErrors returns the number of format errors of an attempt.
func countFormatErrors(item *export.Item) int {
	n := 0
	for _, e := range item.Entries {
		if e.Cause == trajectories.CauseFormatError {
			n++
		}
	}
	return n
}

// countTokens estimates the length of the conversation and the tool definitions.
func (f *Filter) countTokens(item *export.Item) int64 {
	var n int64
	for _, tool := range item.Header.Tools {
		n += model.EstimateTextTokens(tool.Name) + model.EstimateTextTokens(tool.Description) + model.EstimateTextTokens(string(tool.Parameters))
	}
	messages := make([]model.Message, 1)
	for _, e := range item.Entries {
		messages[0] = e.Message.Message
		n += model.EstimateTokens(messages)
		if f.cfg.Reasoning {
			n += model.EstimateTextTokens(e.Reasoning)
		}
	}
	return n
}

// modelMatches reports whether a pattern matches a model name, with or without the prefix
// up to its last slash. In the pattern, * matches any text.
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

// displayName returns the name of an attempt in reports: the path of its journal, or
// the instance ID and the attempt number.
func displayName(item *export.Item) string {
	if item.Journal != "" {
		return item.Journal
	}
	return fmt.Sprintf("%s/%d", item.InstanceID, item.Number)
}
