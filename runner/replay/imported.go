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

// ExamineImported is Examine for a recording that was made of another agent's
// file. Such a file may have less than what a command printed: a text that Python
// read, or the beginning and the end that the model was shown. Then the output is
// compared as far as the file has it, and one that differs is a divergence.
func ExamineImported(recorded trajectories.Execution, now env.Result, ignore Ignore) Finding {
	f := examineImported(recorded, now, ignore)
	if f.Match == OutputDiffers { // such a file says nothing of the files, and often of no code
		f.Match = Diverged
	}
	return f
}

func examineImported(recorded trajectories.Execution, now env.Result, ignore Ignore) Finding {
	if recorded.TimedOut && now.TimedOut {
		recorded.CodeUnknown = true // agents write down different codes of what they killed
	}
	first := Examine(recorded, now, ignore)
	if first.alike() {
		return first
	}
	var used []string
	if text := asPython(now.Output); !bytes.Equal(text, now.Output) {
		// What Python read has no carriage return and is UTF-8.
		now.Head = len(asPython(now.Output[:min(max(now.Head, 0), len(now.Output))]))
		now.Output = text
		recorded.Output = replaced().ReplaceAll(recorded.Output, []byte("\uFFFD"))
		used = append(used, "text mode")
		if f := Examine(recorded, now, ignore); f.alike() {
			return f.with(used)
		}
	}
	if shortened(&recorded) {
		return Examine(recorded, now, ignore).with(append(used, "shortened"))
	}
	return first
}

// alike says that the output is the same, at least but for noise.
func (f Finding) alike() bool { return f.Match == Exact || f.Match == Normalised }

// with adds rules to what it took.
func (f Finding) with(rules []string) Finding {
	if f.alike() {
		f.Match, f.Rules = Normalised, append(f.Rules, rules...)
	}
	return f
}

// replaced is what Python makes of bytes that are no UTF-8: how many of these
// characters it takes depends on its release.
var replaced = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\uFFFD+") })

// asPython is an output as Python's text mode reads it.
func asPython(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 && utf8.Valid(text) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return replaced().ReplaceAll(bytes.ToValidUTF8(text, []byte("\uFFFD")), []byte("\uFFFD"))
}

// The forms in which files have an output of which only the beginning and the end
// were kept: the template of mini-swe-agent, and mini's own .traj.json.
var shortForms = [...]*lazyregexp.Regexp{
	lazyregexp.New(`(?s)<output_head>\n(.*)\n</output_head>\s*<elided_chars>\s*(\d+) characters elided\s*</elided_chars>\s*<output_tail>\n(.*)\n</output_tail>`),
	lazyregexp.New(`(?s)^(.*)\n\[(\d+) bytes were not kept\]\n(.*)$`),
}

// shortened turns such an output into what was kept of it, if it is one.
func shortened(x *trajectories.Execution) bool {
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
