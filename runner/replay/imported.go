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

// CompareImported compares like Compare, for recordings imported from other agents'
// files. Such a file may contain less than the output: text decoded by Python, or
// only the start and end that the agent showed to the model. CompareImported compares
// the part in the file. A different output counts as Diverged.
func CompareImported(recorded trajectories.Execution, got env.Result, ignore IgnoreRules) Finding {
	f := examineImported(recorded, got, ignore)
	if f.Match == OutputDiffers { // the file has no tree hash, and often no exit code, that could confirm a match
		f.Match = Diverged
	}
	return f
}

func examineImported(recorded trajectories.Execution, got env.Result, ignore IgnoreRules) Finding {
	if recorded.TimedOut && got.TimedOut {
		recorded.ExitCodeUnknown = true // the exit code of a killed command depends on the agent
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

// withRules returns a match that needed more rules. It returns other findings
// unchanged.
func (f Finding) withRules(rules []string) Finding {
	if f.matches() {
		f.Match, f.Rules = Normalised, append(f.Rules, rules...)
	}
	return f
}

// replacementRuns matches a run of replacement characters, to which Python decodes
// invalid UTF-8. Their number depends on Python's version.
var replacementRuns = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\uFFFD+") })

// asPython converts an output as Python's text mode does: it replaces \r\n and
// \r by \n, and each run of invalid UTF-8 by one U+FFFD.
func asPython(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 && utf8.Valid(text) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return replacementRuns().ReplaceAll(bytes.ToValidUTF8(text, []byte("\uFFFD")), []byte("\uFFFD"))
}

// truncationFormats are the forms of truncated outputs in files: the template of
// mini-swe-agent, and mini's .traj.json.
var truncationFormats = [...]*lazyregexp.Regexp{
	lazyregexp.New(`(?s)<output_head>\n(.*)\n</output_head>\s*<elided_chars>\s*(\d+) characters elided\s*</elided_chars>\s*<output_tail>\n(.*)\n</output_tail>`),
	lazyregexp.New(`(?s)^(.*)\n\[(\d+) bytes were not kept\]\n(.*)$`),
}

// expandTruncated splits a truncated output into its start and end. It returns false
// if the output is not truncated, or already split.
func expandTruncated(e *trajectories.Execution) bool {
	if e.Truncated {
		return false
	}
	for _, form := range truncationFormats {
		m := form.FindSubmatch(e.Output)
		if m == nil {
			continue
		}
		elided, err := strconv.ParseInt(string(m[2]), 10, 64)
		if err != nil {
			continue
		}
		e.Head, e.Truncated = len(m[1]), true
		e.Output = bytes.Join([][]byte{m[1], m[3]}, nil)
		e.Bytes = elided + int64(len(e.Output))
		return true
	}
	return false
}
