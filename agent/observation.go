package agent

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

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
