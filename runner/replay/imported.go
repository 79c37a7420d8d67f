package replay

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// CompareImported is Compare for recordings converted from other agents' files. Such
// a file may contain less than the output: text decoded by Python, or the start and
// end that the model was shown. Then only that is compared, and a difference is a
// divergence.
func CompareImported(recorded trajectories.Execution, got env.Result, ignore IgnoreRules) Finding {
	f := examineImported(recorded, got, ignore)
	if f.Match == OutputDiffers { // such files do not record the state of files, and often no exit code
		f.Match = Diverged
	}
	return f
}

func examineImported(recorded trajectories.Execution, got env.Result, ignore IgnoreRules) Finding {
	if recorded.TimedOut && got.TimedOut {
		recorded.ExitCodeUnknown = true // agents record different codes for killed commands
	}
	first := Compare(recorded, got, ignore)
	if first.matches() {
		return first
	}
	var used []string
	if text := asPython(got.Output); !bytes.Equal(text, got.Output) {
		// Text read by Python has no carriage returns and is valid UTF-8.
		got.Head = len(asPython(got.Output[:min(max(got.Head, 0), len(got.Output))]))
		got.Output = text
		recorded.Output = replacementRuns().ReplaceAll(recorded.Output, []byte("\uFFFD"))
		used = append(used, "text mode")
		if f := Compare(recorded, got, ignore); f.matches() {
			return f.withRules(used)
		}
	}
	if expandTruncated(&recorded) {
		return Compare(recorded, got, ignore).withRules(append(used, "shortened"))
	}
	return first
}

// matches reports whether the outputs are equal, except for noise.
func (f Finding) matches() bool { return f.Match == Exact || f.Match == Normalised }

// withRules adds rules to those that a match needed.
func (f Finding) withRules(rules []string) Finding {
	if f.matches() {
		f.Match, f.Rules = Normalised, append(f.Rules, rules...)
	}
	return f
}

// replacementRuns matches Python's replacement of invalid UTF-8. The number of
// replacement characters depends on Python's version.
var replacementRuns = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\uFFFD+") })

// asPython returns an output as Python's text mode reads it.
func asPython(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 && utf8.Valid(text) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return replacementRuns().ReplaceAll(bytes.ToValidUTF8(text, []byte("\uFFFD")), []byte("\uFFFD"))
}

// The forms of truncated outputs in files: mini-swe-agent's template, and mini's
// .traj.json.
var shortForms = [...]*lazyregexp.Regexp{
	lazyregexp.New(`(?s)<output_head>\n(.*)\n</output_head>\s*<elided_chars>\s*(\d+) characters elided\s*</elided_chars>\s*<output_tail>\n(.*)\n</output_tail>`),
	lazyregexp.New(`(?s)^(.*)\n\[(\d+) bytes were not kept\]\n(.*)$`),
}

// expandTruncated splits a truncated output into its start and end; false if it is
// not truncated.
func expandTruncated(x *trajectories.Execution) bool {
	if x.Truncated {
		return false
	}
	for _, form := range shortForms {
		m := form.FindSubmatch(x.Output)
		if m == nil {
			continue
		}
		left, err := strconv.ParseInt(string(m[2]), 10, 64)
		if err != nil {
			continue
		}
		x.Head, x.Truncated = len(m[1]), true
		x.Output = bytes.Join([][]byte{m[1], m[3]}, nil)
		x.Bytes = left + int64(len(x.Output))
		return true
	}
	return false
}
