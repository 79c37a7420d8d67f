package agent

import (
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
