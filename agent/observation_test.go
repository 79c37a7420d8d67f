package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

func result(output string) env.Result {
	return env.Result{Output: []byte(output), Bytes: int64(len(output)), Chars: int64(utf8.RuneCountInString(output))}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("ä", 12000)
	// Truncated by the sandbox within characters.
	cut := result(long)
	cut.Output = append([]byte(long[:10001]), long[len(long)-10001:]...)
	cut.Head, cut.Truncated = 10001, true

	tests := []struct {
		name       string
		in         env.Result
		elided     bool
		count      int64
		head, tail string
		text       string
	}{
		{name: "empty", in: result(""), text: ""},
		{name: "9,999 characters are shown whole", in: result(strings.Repeat("x", 9999)), text: strings.Repeat("x", 9999)},
		{
			name: "10,000 are elided, by nothing", in: result(strings.Repeat("x", 10000)),
			elided: true, count: 0, head: strings.Repeat("x", 5000), tail: strings.Repeat("x", 5000),
		},
		{
			name: "characters, not bytes", in: result(strings.Repeat("ä", 9999)), text: strings.Repeat("ä", 9999),
		},
		{
			name: "characters beyond ASCII are never cut", in: result(long),
			elided: true, count: 2000, head: strings.Repeat("ä", 5000), tail: strings.Repeat("ä", 5000),
		},
		{
			name: "what the sandbox cut is counted", in: cut,
			elided: true, count: 2000, head: strings.Repeat("ä", 5000), tail: strings.Repeat("ä", 5000),
		},
		{name: "a bad byte is one character", in: result("a\xff\xfeb"), text: "a\ufffd\ufffdb"},
		{name: "NUL and CR stay", in: result("a\x00b\r\nc\r"), text: "a\x00b\r\nc\r"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := DefaultObservation.shorten(tt.in)
			if v.isElided != tt.elided || v.elidedChars != tt.count {
				t.Fatalf("elided %v, %d characters; want %v, %d", v.isElided, v.elidedChars, tt.elided, tt.count)
			}
			if tt.elided && (v.head != tt.head || v.tail != tt.tail) {
				t.Errorf("head and tail differ: %d and %d bytes", len(v.head), len(v.tail))
			}
			if !tt.elided && v.text != tt.text {
				t.Errorf("text is %q", v.text)
			}
			if !utf8.ValidString(v.text) {
				t.Error("not valid UTF-8")
			}
		})
	}
}

func TestException(t *testing.T) {
	tests := []struct {
		name string
		in   env.Result
		want string
	}{
		{"a plain end", env.Result{ExitCode: 3}, ""},
		{"timeout", env.Result{ExitCode: -1, TimedOut: true}, "did not end within 1m0s"},
		{"signal", env.Result{ExitCode: 137, Signal: 9}, "killed by signal 9"},
		{"never ran", env.Result{ExitCode: -1, Failure: "It has a NUL byte."}, "not run. It has a NUL byte."},
		{"memory", env.Result{OOMKilled: 2}, "out of memory: 2 processes were killed by the kernel"},
		{"memory, once", env.Result{OOMKilled: 1, ExitCode: 137}, "out of memory: 1 process was killed by the kernel"},
		{"memory of the shell itself", env.Result{OOMKilled: 1, ExitCode: 137, Signal: 9}, "killed by signal 9. The sandbox ran out of memory"},
		{"memory, until the time was up", env.Result{OOMKilled: 9, ExitCode: -1, TimedOut: true}, "with everything it had started. The sandbox ran out"},
		{"memory unknown", env.Result{OOMKilled: -1}, ""},
		{"left running", env.Result{Background: []env.Process{{PID: 7, Name: "server"}}}, ""},
		{"a submission that is too large", env.Result{Truncated: true, Output: []byte(SubmitMarkers[0] + "\n")}, "larger than 100 MB"},
		{"any other large output", env.Result{Truncated: true, Output: []byte("x\n")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := exception(tt.in, time.Minute)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestSubmission(t *testing.T) {
	const m = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
	tests := []struct {
		name string
		in   env.Result
		want string
		ok   bool
	}{
		{"marker and patch", result(m + "\ndiff --git a b\n"), "diff --git a b\n", true},
		{"the older marker", result("MINI_SWE_AGENT_FINAL_OUTPUT\nx"), "x", true},
		{"white space before it", result(" \n\t\r\n" + m + "  \r\nx\n"), "x\n", true},
		{"every byte after it", result(m + "\n\xff\r\n \x00\n\n"), "\xff\r\n \x00\n\n", true},
		{"nothing after it", result(m), "", true},
		{"not in the first line", result("hello\n" + m + "\n"), "", false},
		{"only a part of the line", result(m + " now\n"), "", false},
		{"exit code", env.Result{Output: []byte(m + "\n"), ExitCode: 1}, "", false},
		{"timeout", env.Result{Output: []byte(m + "\n"), TimedOut: true}, "", false},
		{"cut", env.Result{Output: []byte(m + "\n"), Truncated: true}, "", false},
		{"no output", result(""), "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := ParseSubmission(tt.in)
			if string(got) != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v; want %q, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestShortenToTail(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	long := strings.Repeat("ä", 30000) // 60,000 bytes
	cut := result(lines(1, 20000))     // truncated by the sandbox
	whole := string(cut.Output)
	cut.Output, cut.Head, cut.Truncated = []byte(whole[:70000]+whole[len(whole)-70001:]), 70000, true

	for _, tt := range []struct {
		name string
		o    ObservationConfig
		in   env.Result
		tail string // empty if all is shown
		note string
	}{
		{name: "empty", in: result("")},
		{name: "short", in: result("a\nb")},
		{name: "2,000 lines", in: result(lines(1, 2000))},
		{name: "2,001 lines", in: result(lines(1, 2001)), tail: lines(2, 2001), note: "1 of its lines, 7 characters"},
		{name: "no line end at the end", in: result(lines(1, 2000) + "last"), tail: lines(2, 2000) + "last", note: "1 of its lines, 7 characters"},
		{name: "51,200 bytes", in: result(strings.Repeat(strings.Repeat("x", 1023)+"\n", 50))},
		{name: "a line more", in: result("a\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", 50)), tail: strings.Repeat(strings.Repeat("x", 1023)+"\n", 50), note: "1 of its lines, 2 characters"},
		{name: "one long line", in: result(long), tail: long[:51200], note: "left out: 4400 characters"},
		{name: "cut within a character", o: ObservationConfig{MaxBytes: 5}, in: result("äää"), tail: "ää", note: "left out: 1 characters"},
		{name: "bytes that are none", o: ObservationConfig{MaxBytes: 3}, in: result("\xbf\xbf\xbf\xbf"), tail: "\ufffd\ufffd\ufffd", note: "left out: 1 characters"},
		{name: "few lines", o: ObservationConfig{MaxLines: 2}, in: result(lines(1, 10)), tail: lines(9, 10), note: "8 of its lines, 56 characters"},
		{name: "few bytes", o: ObservationConfig{MaxBytes: 15}, in: result(lines(1, 9)), tail: lines(8, 9), note: "7 of its lines, 49 characters"},
		{name: "what the sandbox cut", o: ObservationConfig{MaxLines: 3}, in: cut, tail: lines(19998, 20000), note: fmt.Sprintf("left out: %d characters", utf8.RuneCountInString(whole)-33)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.o
			o.Keep = KeepTail
			v := o.orDefault().shorten(tt.in)
			switch {
			case tt.tail == "" && (v.isElided || v.text != string(tt.in.Output)):
				t.Errorf("not shown whole: %+.200v", v)
			case tt.tail != "" && (!v.isElided || v.tail != tt.tail || !strings.Contains(v.head, tt.note) || v.text != v.head+"\n"+v.tail):
				t.Errorf("head %q, tail of %d bytes: %.100q; want %q and %d bytes", v.head, len(v.tail), v.tail, tt.note, len(tt.tail))
			}
			if tt.tail != "" && v.elidedChars+int64(utf8.RuneCountInString(v.tail)) != tt.in.Chars {
				t.Errorf("%d characters are left out, %d shown, of %d", v.elidedChars, utf8.RuneCountInString(v.tail), tt.in.Chars)
			}
		})
	}
}

func TestObservationSettings(t *testing.T) {
	for _, tt := range []struct {
		o    ObservationConfig
		want string
	}{
		{ObservationConfig{}, ""},
		{ObservationConfig{Keep: KeepTail}, ""},
		{ObservationConfig{Keep: KeepEnds}, ""},
		{ObservationConfig{Keep: KeepTail, MaxLines: 100, MaxBytes: 1000}, ""},
		{ObservationConfig{Keep: "head"}, `keep "head" is neither "ends" nor "tail"`},
		{ObservationConfig{MaxLines: 5}, "are for keep: tail"},
		{ObservationConfig{Keep: KeepTail, MaxLines: -1}, "neither may be negative"},
		{ObservationConfig{Keep: KeepTail, MaxBytes: maxObservation + 1}, "at most 1000000"},
	} {
		err := tt.o.orDefault().validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
	c := Config{Observation: ObservationConfig{Keep: KeepTail, MaxBytes: maxObservation}.orDefault()}
	if got := c.outputLimit(); got/2 < maxObservation {
		t.Errorf("the sandbox keeps %d bytes, not enough for a tail of %d", got, maxObservation)
	}
}
