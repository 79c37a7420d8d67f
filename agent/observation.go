package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// ObservationConfig bounds how much of a command's output the model is shown.
type ObservationConfig struct {
	// MaxChars is the length, in characters, from which an output is shortened
	// to its first HeadChars and last TailChars.
	MaxChars  int `yaml:"max_chars" json:"max_chars"`
	HeadChars int `yaml:"head_chars" json:"head_chars"`
	TailChars int `yaml:"tail_chars" json:"tail_chars"`
	// Keep selects what is shown of a long output. KeepEnds (the default) shows
	// head and tail as above. KeepTail shows only the last lines, at most
	// MaxLines lines and MaxBytes bytes. If the last line alone is longer than
	// MaxBytes, it shows that line's last bytes. A zero MaxLines or MaxBytes
	// means DefaultMaxLines or DefaultMaxBytes.
	Keep     string `yaml:"keep" json:"keep,omitempty"`
	MaxLines int    `yaml:"max_lines" json:"max_lines,omitempty"`
	MaxBytes int    `yaml:"max_bytes" json:"max_bytes,omitempty"`
}

// Values of ObservationConfig.Keep, and the default limits of KeepTail.
const (
	KeepEnds        = "ends"
	KeepTail        = "tail"
	DefaultMaxLines = 2000
	DefaultMaxBytes = 50 << 10
)

// DefaultObservation applies where an ObservationConfig has no character limits.
var DefaultObservation = ObservationConfig{MaxChars: 10000, HeadChars: 5000, TailChars: 5000}

// maxObservation bounds MaxChars and MaxBytes, so that the sandbox can keep
// head and tail of an observation at four bytes per character.
const maxObservation = 1_000_000

// orDefault fills in the default character limits if none is set.
func (o ObservationConfig) orDefault() ObservationConfig {
	if o.MaxChars == 0 && o.HeadChars == 0 && o.TailChars == 0 {
		o.MaxChars, o.HeadChars, o.TailChars = DefaultObservation.MaxChars, DefaultObservation.HeadChars, DefaultObservation.TailChars
	}
	return o
}

func (o ObservationConfig) validate() error {
	if o.MaxChars < 1 || o.HeadChars < 0 || o.TailChars < 0 || o.HeadChars+o.TailChars > o.MaxChars {
		return fieldErrorf("observation", "max_chars %d, head_chars %d, tail_chars %d: head and tail together must not exceed max_chars, which must be positive",
			o.MaxChars, o.HeadChars, o.TailChars)
	}
	if o.MaxChars > maxObservation {
		return fieldErrorf("observation", "max_chars %d is above %d", o.MaxChars, maxObservation)
	}
	switch {
	case o.Keep != "" && o.Keep != KeepEnds && o.Keep != KeepTail:
		return fieldErrorf("observation", "keep %.60q is neither %q nor %q", o.Keep, KeepEnds, KeepTail)
	case o.Keep != KeepTail && (o.MaxLines != 0 || o.MaxBytes != 0):
		return fieldErrorf("observation", "max_lines and max_bytes are for keep: %s", KeepTail)
	case o.MaxLines < 0 || o.MaxBytes < 0 || o.MaxBytes > maxObservation:
		return fieldErrorf("observation",
			"max_lines %d, max_bytes %d: neither may be negative, and max_bytes is at most %d",
			o.MaxLines, o.MaxBytes, maxObservation)
	}
	return nil
}

// shownOutput is an output as the model sees it: bounded, valid UTF-8.
type shownOutput struct {
	text        string // the whole output, or head, a note and tail
	head, tail  string // set if shortened
	elidedChars int64  // number of characters left out
	isElided    bool
}

// shorten bounds an output. Characters are code points; a byte that is not part
// of valid UTF-8 counts as one and is shown as U+FFFD. Counts refer to the
// whole output, even if the sandbox kept only its head and tail.
func (o ObservationConfig) shorten(r env.Result) shownOutput {
	if o.Keep == KeepTail {
		return o.shortenToTail(r)
	}
	if r.Chars < int64(o.MaxChars) && !r.Truncated {
		return shownOutput{text: toValidUTF8(r.Output)}
	}
	head, tail := r.Output, r.Output
	if r.Truncated {
		head, tail = r.Output[:r.Head], r.Output[r.Head:]
	}
	v := shownOutput{
		isElided:    true,
		head:        toValidUTF8(head[:prefixLen(head, o.HeadChars)]),
		tail:        toValidUTF8(tail[suffixStart(tail, o.TailChars):]),
		elidedChars: r.Chars - int64(o.HeadChars) - int64(o.TailChars),
	}
	v.text = fmt.Sprintf("%s\n[... %d characters left out ...]\n%s", v.head, v.elidedChars, v.tail)
	return v
}

// shortenToTail bounds an output to its last lines. It puts the note on what is
// left out into head, so that a template that shows head and tail includes the
// note.
func (o ObservationConfig) shortenToTail(r env.Result) shownOutput {
	tail := r.Output
	if r.Truncated {
		tail = r.Output[r.Head:]
	}
	start := lastLines(tail, cmp.Or(o.MaxLines, DefaultMaxLines), cmp.Or(o.MaxBytes, DefaultMaxBytes))
	if start == 0 && !r.Truncated {
		return shownOutput{text: toValidUTF8(r.Output)}
	}
	v := shownOutput{isElided: true, tail: toValidUTF8(tail[start:]), elidedChars: r.Chars - int64(utf8.RuneCount(tail[start:]))}
	lineCount := ""
	if whole := start == 0 || tail[start-1] == '\n'; !r.Truncated && whole {
		lineCount = fmt.Sprintf("%d of its lines, ", bytes.Count(tail[:start], []byte("\n")))
	}
	v.head = fmt.Sprintf("[... the beginning is left out: %s%d characters; the end follows ...]", lineCount, v.elidedChars)
	v.text = v.head + "\n" + v.tail
	return v
}

// lastLines returns the offset of the last lines of b: at most the given number
// of lines, within size bytes. If the last line alone is longer, it returns the
// offset of its last size bytes.
func lastLines(b []byte, lines, size int) int {
	start := len(b)
	for range lines {
		if start == 0 {
			break
		}
		lineStart := bytes.LastIndexByte(b[:start-1], '\n') + 1
		if len(b)-lineStart > size {
			break
		}
		start = lineStart
	}
	if start < len(b) || len(b) == 0 {
		return start
	}
	return wholeRune(b, len(b)-size)
}

// wholeRune returns i if a character starts there, else the end of the
// character around it.
func wholeRune(b []byte, i int) int {
	for k := 1; k < utf8.UTFMax && k <= i; k++ {
		if _, size := utf8.DecodeRune(b[i-k:]); size > k {
			return i - k + size
		}
	}
	return i
}

// prefixLen returns the length in bytes of the first n characters of b.
func prefixLen(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// suffixStart returns the offset in b of its last n characters.
func suffixStart(b []byte, n int) int {
	i := len(b)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRune(b[:i])
		i -= size
	}
	return i
}

// toValidUTF8 returns b with U+FFFD in place of each invalid byte.
func toValidUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[size:]
	}
	return s.String()
}

// exception describes how a command failed beyond its exit code: not run,
// killed, out of memory, or a submission that is too large. It is empty if
// there is nothing to report.
func exception(r env.Result, timeout time.Duration) string {
	var msgs []string
	switch {
	case r.Failure != "":
		msgs = append(msgs, "The command was not run. "+r.Failure)
	case r.TimedOut:
		msgs = append(msgs, fmt.Sprintf("The command did not end within %v and was killed, with everything it had started.", timeout))
	case r.Signal != 0:
		msgs = append(msgs, fmt.Sprintf("The shell was killed by signal %d.", r.Signal))
	}
	if r.KilledEarlier {
		msg := "Processes that earlier commands had left running were killed with it."
		if !r.TimedOut {
			msg = "No process could be started any more, so what earlier commands had left running was killed first."
		}
		msgs = append(msgs, msg)
	}
	if r.OOMKilled > 0 {
		killed := "1 process was"
		if r.OOMKilled > 1 {
			killed = fmt.Sprintf("%d processes were", r.OOMKilled)
		}
		msgs = append(msgs, "The sandbox ran out of memory: "+killed+" killed by the kernel. Try with less at a time.")
	}
	if r.Truncated && len(msgs) == 0 && startsSubmission(r.Output) {
		msgs = append(msgs, fmt.Sprintf("The submission is larger than %d MB and was not accepted.", env.SubmissionLimit>>20))
	}
	return strings.Join(msgs, " ")
}

func startsSubmission(output []byte) bool {
	_, ok := ParseSubmission(env.Result{Output: output})
	return ok
}

// processList lists the first five of the processes that a command left
// running, and counts the others.
func processList(list []env.Process) string {
	const shown = 5
	var names []string
	for i, p := range list {
		if i == shown {
			names = append(names, fmt.Sprintf("and %d more", len(list)-shown))
			break
		}
		names = append(names, fmt.Sprintf("%s (pid %d)", strings.ToValidUTF8(p.Name, "?"), p.PID))
	}
	return strings.Join(names, ", ")
}
