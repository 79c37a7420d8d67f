package protocol

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Bounds of the search for commands in a reply.
const (
	maxCandidates = 100      // commands, and ends of a command
	maxParsed     = 16 << 20 // bytes that are parsed to find the end of a command
	maxNesting    = 16_000   // characters and words that may open a nested construct: the parser recurses
)

// commandEnd returns the first of ends at which the text before it is a complete command.
// If the text is not complete at any of them, it returns the first and what is wrong,
// worded for the model. fence is what may start a line only in a here-document or in
// quotes; it may be empty.
func commandEnd(text string, ends []int, fence string) (end int, wrong string) {
	parsed := 0
	for _, end := range ends {
		if parsed += end; parsed > maxParsed {
			break
		}
		script := withoutCR(text[:end])
		inner := fence != "" && strings.Contains("\n"+script, "\n"+fence)
		if inner { // outside of quotes, this is an error
			script = strings.ReplaceAll("\n"+script, "\n"+fence, "\n)")
		}
		if err := parse(script); err == nil && !endsInBackslash(script) || !inner && err != nil && !isIncomplete(err) {
			return end, ""
		}
	}
	if wrong = incompleteness(text[:ends[0]]); wrong == "" {
		wrong = "it is not clear where your command ends"
	}
	return ends[0], wrong
}

// withoutCR returns a script with the line ends with which it is run (see normalizeNewlines).
func withoutCR(script string) string { return normalizeNewlines(strings.TrimSuffix(script, "\n")) }

// endsInBackslash reports whether the last line of a script is to be continued.
func endsInBackslash(script string) bool {
	return (len(script)-len(strings.TrimRight(script, `\`)))%2 == 1
}

// incompleteness says what a command lacks that ends too early, worded for the model;
// empty if it lacks nothing.
func incompleteness(script string) string {
	script = withoutCR(script)
	err := parse(script)
	parseError, _ := errors.AsType[syntax.ParseError](err)
	switch {
	case err == nil && endsInBackslash(script):
		return "your command is not complete where it ends: a backslash ends it"
	case !isIncomplete(err):
		return ""
	}
	return "your command is not complete where it ends: " + parseError.Text
}

// parse returns the error of parsing a script; nil for a script that is too long or nested
// too deep to be parsed.
func parse(script string) error {
	if len(script) > maxParsed || strings.Count(script, "(")+strings.Count(script, "{")+strings.Count(script, "`")+
		len(nesting.FindAllStringIndex(script, maxNesting+1)) > maxNesting {
		return nil
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	return err
}

var nesting = lazyregexp.New(`[\[!?|&]|\b(if|elif|while|until|for|case|select|time|coproc|function)\b`)

// isIncomplete reports whether a script has an error because it ends too early.
func isIncomplete(err error) bool {
	parseError, ok := errors.AsType[syntax.ParseError](err)
	return ok && (syntax.IsIncomplete(err) || strings.HasPrefix(parseError.Text, "unclosed here-document"))
}
