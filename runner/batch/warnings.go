package batch

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
)

// Warnings selects the warnings that an output shows: the first of each MessagePattern.
// The keys are the patterns shown so far.
type Warnings map[string]bool

// Limits of the warnings that an output shows.
const (
	maxWarnings = 1000
	maxWarning  = 2000 // bytes of a warning that are compared
)

// New returns the warnings of an event that are to be shown.
func (w Warnings) New(e runner.Event) []string {
	all := e.Warnings
	switch {
	case e.Type == runner.Warning:
		all = []string{e.Text}
	case e.Outcome != nil:
		all = e.Outcome.Warnings
	}
	var texts []string
	for _, warning := range all {
		pattern := MessagePattern(text.Clip(warning, maxWarning), e.Instance)
		if !w[pattern] && len(w) < maxWarnings {
			w[pattern] = true
			texts = append(texts, warning)
		}
	}
	return texts
}

// variableParts lists patterns for the variable parts of errors, most specific
// first.
var variableParts = [...]struct {
	pattern     *lazyregexp.Regexp
	placeholder string
}{
	{lazyregexp.New(`\bsha256:[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`), "<id>"},
	{lazyregexp.New(`(^|[\s"'=(:])(~|\.{1,2})?(/[\w.@+~-]+){2,}/?`), "${1}<path>"},
	{lazyregexp.New(`\b[0-9a-fA-F]{8,}\b`), "<id>"},
	{lazyregexp.New(`\b([0-9]+(\.[0-9]+)?(h|ms|µs|us|ns|m|s))+\b`), "<time>"},
	{lazyregexp.New(`[0-9]+([.,][0-9]+)*`), "<n>"},
}

// minIDLength is the minimum length of an instance id that MessagePattern replaces.
// A shorter id may be an ordinary word.
const minIDLength = 4

// MessagePattern returns a message with placeholders for the instance id, numbers,
// durations, paths and container ids. Similar messages have equal patterns. What
// precedes a slash in instance is not part of the id: events of a sweep have the
// combination there.
func MessagePattern(message, instance string) string {
	instance = instance[strings.LastIndexByte(instance, '/')+1:]
	message = strings.Join(strings.Fields(message), " ")
	if len(instance) >= minIDLength {
		// Image names contain the id in lower case and with "__" replaced.
		lower := strings.ToLower(instance)
		for _, name := range []string{
			instance, lower, strings.ReplaceAll(lower, "__", "_1776_"), strings.ReplaceAll(lower, "__", "_s_"),
		} {
			message = strings.ReplaceAll(message, name, "<instance>")
		}
	}
	for _, part := range variableParts {
		message = part.pattern.ReplaceAllString(message, part.placeholder)
	}
	return message
}
