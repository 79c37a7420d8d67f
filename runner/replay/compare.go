// Package replay runs the commands of a recorded attempt again, in a fresh
// sandbox, and says where what they do differs.
//
// Two runs of one command are rarely the same byte for byte: they tell the
// time, name temporary files, print addresses. Such noise is known by a list of
// patterns (normalize.go), and a match says which of them it took.
package replay

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Match says how much alike two executions of a command are.
type Match string

// The degrees of likeness.
const (
	Exact      Match = "exact"      // byte for byte
	Normalised Match = "normalised" // but for times, durations, addresses, ports, temporary names and the order of lines
	// OutputDiffers is another output of a command that ended alike, and left the
	// files alike as far as that is on record.
	OutputDiffers Match = "output differs"
	Diverged      Match = "diverged" // another exit code, a timeout on one side, or other files
)

// Finding is what a comparison came to.
type Finding struct {
	Match Match `json:"match"`
	// Rules are the names of those that were needed where it is Normalised.
	Rules []string `json:"rules,omitempty"`
	// Difference is the first thing that is another where OutputDiffers or Diverged:
	// one line, bounded and fit to be shown.
	Difference string `json:"difference,omitempty"`
}

// Examine holds what a command did now against what is recorded of it.
func Examine(recorded trajectories.Execution, now env.Result, ignore Ignore) Finding {
	c := comparison{rules: slices.Concat(ignore, rules()), budget: maxNormalised}
	then, since := outputOf(recorded.Output, recorded.Head, recorded.Truncated, recorded.Bytes), outputOf(now.Output, now.Head, now.Truncated, now.Bytes)
	alike := c.outputs(then, since, recorded.TimedOut && now.TimedOut)
	if !alike && recorded.CodeUnknown {
		alike = c.within(then, since)
	}
	if recorded.TimedOut != now.TimedOut || recorded.ExitCode != now.ExitCode && !recorded.CodeUnknown {
		f := Finding{Match: Diverged, Difference: ending(now.TimedOut, now.ExitCode) + ", recorded " + ending(recorded.TimedOut, recorded.ExitCode)}
		switch {
		case now.Failure != "":
			f.Difference += ": " + excerpt([]byte(now.Failure), 0)
		case !alike:
			f.Difference += "; " + c.difference
		}
		return f
	}
	switch {
	case !alike && recorded.CodeUnknown: // the output is all there is to judge by
		return Finding{Match: Diverged, Difference: c.difference}
	case !alike:
		return Finding{Match: OutputDiffers, Difference: c.difference}
	case len(c.used) == 0:
		return Finding{Match: Exact} // what both have kept is the same
	}
	slices.Sort(c.used)
	return Finding{Match: Normalised, Rules: c.used}
}

// ending says how a command ended.
func ending(timedOut bool, code int) string {
	if timedOut {
		return "a timeout"
	}
	return fmt.Sprintf("exit code %d", code)
}

// output is what was kept of an output: all, or its beginning and its end.
type output struct {
	text  []byte
	head  int
	cut   bool
	bytes int64 // of the whole
}

// outputOf trusts nothing: a record may be a stranger's.
func outputOf(text []byte, head int, cut bool, total int64) output {
	return output{text: text, head: min(max(head, 0), len(text)), cut: cut, bytes: total}
}

// comparison is one on its way.
type comparison struct {
	rules      []rule
	budget     int // bytes that may still be normalised
	used       []string
	difference string
}

// outputs says whether two outputs are alike. Of outputs that were cut, what
// both have kept is compared.
func (c *comparison) outputs(then, now output, timedOut bool) bool {
	if !then.cut && !now.cut {
		a, b := then.text, now.text
		if timedOut { // how far it came until it was killed is chance
			a, b = c.asFar(a, b)
		}
		return c.lines(a, b, "line %d")
	}
	if !c.longEnough(then, now) {
		return false
	}
	a, b := common(then.first(), now.first(), firstLines)
	if !c.lines(a, b, "line %d") {
		return false
	}
	if timedOut {
		c.use("timeout")
		return true
	}
	a, b = common(then.last(), now.last(), lastLines)
	return c.lines(a, b, "line %d of the end that both kept") && c.length(then, now)
}

// within says of a recording that has no more than what the model was shown
// whether that holds the output: other agents write about it, and leave white
// space at its end away.
func (c *comparison) within(then, now output) bool {
	text := bytes.TrimSpace(now.text)
	if len(text) == 0 && len(bytes.TrimSpace(then.text)) > 0 || !bytes.Contains(then.text, text) {
		return false
	}
	c.use("wording")
	return true
}

// asFar is as much of two outputs as both have: the last line of either may be
// half of one.
func (c *comparison) asFar(then, now []byte) (a, b []byte) {
	if bytes.Equal(then, now) {
		return then, now
	}
	short := min(wholeLines(then), wholeLines(now))
	a, b = firstLines(then, short), firstLines(now, short)
	if len(a) < len(then) || len(b) < len(now) {
		c.use("timeout")
	}
	return a, b
}

func wholeLines(text []byte) int { return bytes.Count(text, []byte("\n")) }

// longEnough says whether an output that is whole may be one of which another
// run kept less: all that was kept must be in it.
func (c *comparison) longEnough(then, now output) bool {
	least := func(o output) int { return countLines(o.first()) + countLines(o.last()) }
	switch {
	case then.cut && !now.cut && countLines(now.text) < least(then):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", now.bytes, then.bytes)
	case now.cut && !then.cut && countLines(then.text) < least(now):
		c.difference = fmt.Sprintf("%d bytes in all, recorded %d", now.bytes, then.bytes)
	default:
		return true
	}
	return false
}

// length compares what is known of the part that was not kept: how long it was.
// Times and names may make that a little more or less.
func (c *comparison) length(then, now output) bool {
	if !then.cut || !now.cut || then.bytes == now.bytes {
		return true
	}
	if less, more := min(then.bytes, now.bytes), max(then.bytes, now.bytes); len(c.used) > 0 && more-less <= more/10 {
		return true
	}
	c.difference = fmt.Sprintf("%d bytes in all, recorded %d", now.bytes, then.bytes)
	return false
}

func (c *comparison) use(name string) {
	if !slices.Contains(c.used, name) {
		c.used = append(c.used, name)
	}
}
