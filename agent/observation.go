package agent

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// view is an output as the model is shown it: text, bounded, valid UTF-8.
type view struct {
	text       string // whole, or head + a note + tail
	head, tail string // set when elided
	elided     int64  // characters left out
	isElided   bool
}

// look bounds an output. Characters are code points; a byte that is not part
// of valid UTF-8 counts as one and is shown as U+FFFD. The counts are of the
// whole output, also where the sandbox kept only its head and tail.
func (o Observation) look(r env.Result) view {
	if o.Keep == KeepTail {
		return o.lookAtTail(r)
	}
	if r.Chars < int64(o.MaxChars) && !r.Truncated {
		return view{text: valid(r.Output)}
	}
	head, tail := r.Output, r.Output
	if r.Truncated {
		head, tail = r.Output[:r.Head], r.Output[r.Head:]
	}
	v := view{
		isElided: true,
		head:     valid(head[:prefix(head, o.HeadChars)]),
		tail:     valid(tail[suffix(tail, o.TailChars):]),
		elided:   r.Chars - int64(o.HeadChars) - int64(o.TailChars),
	}
	v.text = fmt.Sprintf("%s\n[... %d characters left out ...]\n%s", v.head, v.elided, v.tail)
	return v
}

// prefix is the length in bytes of the first n characters of b.
func prefix(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// suffix is where in b its last n characters begin.
func suffix(b []byte, n int) int {
	i := len(b)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRune(b[:i])
		i -= size
	}
	return i
}

// valid is b with U+FFFD for each byte that is not part of valid UTF-8.
func valid(b []byte) string {
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

// exception says in a sentence what the exit code alone does not; empty for a
// command that simply ended.
func exception(r env.Result, timeout time.Duration) string {
	var s []string
	switch {
	case r.Failure != "":
		s = append(s, "The command was not run. "+r.Failure)
	case r.TimedOut:
		s = append(s, fmt.Sprintf("The command did not end within %v and was killed, with everything it had started.", timeout))
	case r.Signal != 0:
		s = append(s, fmt.Sprintf("The shell was killed by signal %d.", r.Signal))
	}
	if r.Collateral {
		what := "Processes that earlier commands had left running were killed with it."
		if !r.TimedOut {
			what = "No process could be started any more, so what earlier commands had left running was killed first."
		}
		s = append(s, what)
	}
	if r.OOMKilled > 0 {
		killed := "1 process was"
		if r.OOMKilled > 1 {
			killed = fmt.Sprintf("%d processes were", r.OOMKilled)
		}
		s = append(s, "The sandbox ran out of memory: "+killed+" killed by the kernel. Try with less at a time.")
	}
	if r.Truncated && len(s) == 0 && startsSubmission(r.Output) {
		s = append(s, fmt.Sprintf("The submission is larger than %d MB and was not accepted.", env.SubmissionLimit>>20))
	}
	return strings.Join(s, " ")
}

func startsSubmission(output []byte) bool {
	_, ok := submission(env.Result{Output: output})
	return ok
}

// processes names what a command left running; empty for nothing.
func processes(list []env.Process) string {
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
