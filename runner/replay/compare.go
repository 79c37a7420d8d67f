// Package replay reruns the commands of a recorded attempt in a fresh sandbox and
// reports differences between the recorded and the new results.
//
// Two runs of a command rarely print the same bytes, because output contains times,
// names of temporary files and addresses. Rules (normalize.go) match such noise. A
// Finding lists the rules that were needed.
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
	Normalised Match = "normalised" // equal after Finding.Rules have removed noise
	// OutputDiffers means a different output with the same exit code and, if a
	// tree hash was recorded, the same files.
	OutputDiffers Match = "output differs"
	// Diverged means a different exit code, a timeout on one side, different files, or a
	// different output if no recorded exit code or tree hash could confirm the result.
	Diverged Match = "diverged"
)

// Finding is the result of a comparison.
type Finding struct {
	Match Match `json:"match"`
	// Rules are the names of the rules that a Normalised match needed.
	Rules []string `json:"rules,omitempty"`
	// Difference describes the first difference of OutputDiffers and Diverged, or
	// the reason for Skipped and Unrecorded. It is one printable line of limited
	// length.
	Difference string `json:"difference,omitempty"`
}

// Compare compares the result of a rerun command with its recording.
func Compare(recorded trajectories.Execution, rerun env.Result, ignore IgnoreRules) Finding {
	c := comparison{rules: slices.Concat(ignore, rules()), budget: maxNormalised}
	recordedOutput, rerunOutput := outputOf(recorded.Output, recorded.Head, recorded.Truncated, recorded.Bytes), outputOf(rerun.Output, rerun.Head, rerun.Truncated, rerun.Bytes)
	equal := c.matchOutputs(recordedOutput, rerunOutput, recorded.TimedOut && rerun.TimedOut)
	if !equal && recorded.ExitCodeUnknown {
		equal = c.contains(recordedOutput, rerunOutput)
	}
	if recorded.TimedOut != rerun.TimedOut || recorded.ExitCode != rerun.ExitCode && !recorded.ExitCodeUnknown {
		f := Finding{Match: Diverged, Difference: endText(rerun.TimedOut, rerun.ExitCode) + ", recorded " + endText(recorded.TimedOut, recorded.ExitCode)}
		switch {
		case rerun.Failure != "":
			f.Difference += ": " + excerpt([]byte(rerun.Failure), 0)
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
		return Finding{Match: Exact} // the parts of both outputs that were compared are equal
	}
	slices.Sort(c.used)
	return Finding{Match: Normalised, Rules: c.used}
}

// endText describes how a command ended.
func endText(timedOut bool, code int) string {
	if timedOut {
		return "a timeout"
	}
	return fmt.Sprintf("exit code %d", code)
}

// output is the output of a command. A truncated output has only the start and the
// end of the complete one.
type output struct {
	text      []byte
	head      int // length of the start in text, in bytes; used only if truncated
	truncated bool
	bytes     int64 // length of the complete output
}

// outputOf returns an output and corrects an invalid head, because recordings are
// not trusted.
func outputOf(text []byte, head int, cut bool, total int64) output {
	return output{text: text, head: min(max(head, 0), len(text)), truncated: cut, bytes: total}
}

// comparison is the state of one comparison.
type comparison struct {
	rules      []rule
	budget     int      // bytes that may still be normalised
	used       []string // names of the rules that were needed
	difference string
}

// matchOutputs reports whether two outputs match. If one was truncated, it compares
// the lines that both kept.
func (c *comparison) matchOutputs(want, got output, timedOut bool) bool {
	if !want.truncated && !got.truncated {
		a, b := want.text, got.text
		if timedOut { // the length of the output before the kill is random
			a, b = c.commonLines(a, b)
		}
		return c.matchLines(a, b, "line %d")
	}
	if !c.checkLength(want, got) {
		return false
	}
	a, b := trimToShorter(want.startLines(), got.startLines(), firstLines)
	if !c.matchLines(a, b, "line %d") {
		return false
	}
	if timedOut {
		c.addRule("timeout")
		return true
	}
	a, b = trimToShorter(want.endLines(), got.endLines(), lastLines)
	return c.matchLines(a, b, "line %d of the end that both kept") && c.lengthsMatch(want, got)
}

// contains reports whether a recording of another agent contains the output. Such a
// recording is the text shown to the model: the agent adds text around the output
// and trims white space.
func (c *comparison) contains(want, got output) bool {
	text := bytes.TrimSpace(got.text)
	if len(text) == 0 && len(bytes.TrimSpace(want.text)) > 0 || !bytes.Contains(want.text, text) {
		return false
	}
	c.addRule("wording")
	return true
}

// commonLines cuts the outputs of a killed command to the number of complete lines
// that both have. The last line of either output may be incomplete.
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

// checkLength reports whether a complete output has at least as many lines as the
// other, truncated output has kept.
func (c *comparison) checkLength(want, got output) bool {
	minLines := func(o output) int { return countLines(o.startLines()) + countLines(o.endLines()) }
	switch {
	case want.truncated && !got.truncated && countLines(got.text) < minLines(want):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", got.bytes, want.bytes)
	case got.truncated && !want.truncated && countLines(want.text) < minLines(got):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", got.bytes, want.bytes)
	default:
		return true
	}
	return false
}

// lengthsMatch reports whether the complete lengths of two truncated outputs match.
// If noise was found, the lengths may differ by up to 10%.
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
