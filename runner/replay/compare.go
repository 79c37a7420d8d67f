// Package replay reruns the commands of a recorded attempt in a fresh sandbox and
// reports where their results differ.
//
// Two runs of a command rarely print the same bytes: output contains times, names of
// temporary files, addresses. Rules (normalize.go) match such noise, and a match
// lists the rules it needed.
package replay

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Match is the degree of similarity of two executions of a command.
type Match string

// The degrees of similarity.
const (
	Exact      Match = "exact"      // equal bytes
	Normalised Match = "normalised" // equal except for noise: times, durations, addresses, ports, temporary names, the order of lines
	// OutputDiffers is a different output with the same exit code and, as far as
	// recorded, the same files.
	OutputDiffers Match = "output differs"
	Diverged      Match = "diverged" // a different exit code, a timeout on one side, or different files
)

// Finding is the result of a comparison.
type Finding struct {
	Match Match `json:"match"`
	// Rules are the rules that a Normalised match needed.
	Rules []string `json:"rules,omitempty"`
	// Difference describes the first difference if OutputDiffers or Diverged, in
	// one line, shortened and printable.
	Difference string `json:"difference,omitempty"`
}

// Compare compares the result of a rerun command with its recording.
func Compare(recorded trajectories.Execution, got env.Result, ignore IgnoreRules) Finding {
	c := comparison{rules: slices.Concat(ignore, rules()), budget: maxNormalised}
	want, gotOut := outputOf(recorded.Output, recorded.Head, recorded.Truncated, recorded.Bytes), outputOf(got.Output, got.Head, got.Truncated, got.Bytes)
	equal := c.matchOutputs(want, gotOut, recorded.TimedOut && got.TimedOut)
	if !equal && recorded.ExitCodeUnknown {
		equal = c.contains(want, gotOut)
	}
	if recorded.TimedOut != got.TimedOut || recorded.ExitCode != got.ExitCode && !recorded.ExitCodeUnknown {
		f := Finding{Match: Diverged, Difference: ending(got.TimedOut, got.ExitCode) + ", recorded " + ending(recorded.TimedOut, recorded.ExitCode)}
		switch {
		case got.Failure != "":
			f.Difference += ": " + excerpt([]byte(got.Failure), 0)
		case !equal:
			f.Difference += "; " + c.difference
		}
		return f
	}
	switch {
	case !equal && recorded.ExitCodeUnknown: // only the output can be compared
		return Finding{Match: Diverged, Difference: c.difference}
	case !equal:
		return Finding{Match: OutputDiffers, Difference: c.difference}
	case len(c.used) == 0:
		return Finding{Match: Exact} // equal as far as both were kept
	}
	slices.Sort(c.used)
	return Finding{Match: Normalised, Rules: c.used}
}

// ending describes how a command ended.
func ending(timedOut bool, code int) string {
	if timedOut {
		return "a timeout"
	}
	return fmt.Sprintf("exit code %d", code)
}

// output is a command's output: complete, or its start and end.
type output struct {
	text      []byte
	head      int
	truncated bool
	bytes     int64 // length of the complete output
}

// outputOf returns a valid output for untrusted input.
func outputOf(text []byte, head int, cut bool, total int64) output {
	return output{text: text, head: min(max(head, 0), len(text)), truncated: cut, bytes: total}
}

// comparison is the state of one comparison.
type comparison struct {
	rules      []rule
	budget     int // bytes that may still be normalised
	used       []string
	difference string
}

// matchOutputs reports whether two outputs match. If they were truncated, it compares the
// parts that both kept.
func (c *comparison) matchOutputs(want, got output, timedOut bool) bool {
	if !want.truncated && !got.truncated {
		a, b := want.text, got.text
		if timedOut { // how much was printed before the kill is random
			a, b = c.commonLines(a, b)
		}
		return c.matchLines(a, b, "line %d")
	}
	if !c.checkLength(want, got) {
		return false
	}
	a, b := common(want.first(), got.first(), firstLines)
	if !c.matchLines(a, b, "line %d") {
		return false
	}
	if timedOut {
		c.addRule("timeout")
		return true
	}
	a, b = common(want.last(), got.last(), lastLines)
	return c.matchLines(a, b, "line %d of the end that both kept") && c.lengthsMatch(want, got)
}

// contains reports whether a recording, which is the text shown to the model,
// contains the output. Other agents add text around it and trim white space.
func (c *comparison) contains(want, got output) bool {
	text := bytes.TrimSpace(got.text)
	if len(text) == 0 && len(bytes.TrimSpace(want.text)) > 0 || !bytes.Contains(want.text, text) {
		return false
	}
	c.addRule("wording")
	return true
}

// commonLines returns the complete lines that both outputs of a killed command have.
// The last line of either may be incomplete.
func (c *comparison) commonLines(want, got []byte) (a, b []byte) {
	if bytes.Equal(want, got) {
		return want, got
	}
	short := min(countNewlines(want), countNewlines(got))
	a, b = firstLines(want, short), firstLines(got, short)
	if len(a) < len(want) || len(b) < len(got) {
		c.addRule("timeout")
	}
	return a, b
}

func countNewlines(text []byte) int { return bytes.Count(text, []byte("\n")) }

// checkLength reports whether a complete output has at least as many lines as were
// kept of a truncated one.
func (c *comparison) checkLength(want, got output) bool {
	least := func(o output) int { return countLines(o.first()) + countLines(o.last()) }
	switch {
	case want.truncated && !got.truncated && countLines(got.text) < least(want):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", got.bytes, want.bytes)
	case got.truncated && !want.truncated && countLines(want.text) < least(got):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", got.bytes, want.bytes)
	default:
		return true
	}
	return false
}

// lengthsMatch compares the lengths of truncated outputs. Noise may change them by up to
// 10%.
func (c *comparison) lengthsMatch(want, got output) bool {
	if !want.truncated || !got.truncated || want.bytes == got.bytes {
		return true
	}
	if less, more := min(want.bytes, got.bytes), max(want.bytes, got.bytes); len(c.used) > 0 && more-less <= more/10 {
		return true
	}
	c.difference = fmt.Sprintf("%d bytes in all, recorded %d", got.bytes, want.bytes)
	return false
}

func (c *comparison) addRule(name string) {
	if !slices.Contains(c.used, name) {
		c.used = append(c.used, name)
	}
}
