package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/runner"
)

func TestChooseProgress(t *testing.T) {
	terminal := Terminal{isTerminal: true, inForeground: true, term: "xterm"}
	modified := func(change func(*Terminal)) Terminal {
		d := terminal
		change(&d)
		return d
	}
	tests := []struct {
		name, kind string
		on         Terminal
		want       string // the kind, or a part of the error
	}{
		{"a terminal", "", terminal, "live"},
		{"no terminal", "", Terminal{term: "xterm"}, "plain"},
		{"a dumb terminal", "", modified(func(d *Terminal) { d.term = "dumb" }), "plain"},
		{"no TERM", "", modified(func(d *Terminal) { d.term = "" }), "plain"},
		{"CI", "", modified(func(d *Terminal) { d.inCI = true }), "plain"},
		{"in the background", "", modified(func(d *Terminal) { d.inForeground = false }), "plain"},
		{"live requested in CI", "live", modified(func(d *Terminal) { d.inCI = true }), "live"},
		{"live requested in the background", "live", modified(func(d *Terminal) { d.inForeground = false }), "plain"},
		{"live requested without a terminal", "live", Terminal{term: "xterm"}, "--progress live needs a terminal on stderr; use plain"},
		{"live requested on a dumb terminal", "live", modified(func(d *Terminal) { d.term = "dumb" }), "does not support TERM=dumb; use plain"},
		{"plain on a terminal", "plain", terminal, "plain"},
		{"json", "json", terminal, "json"},
		{"none", "none", Terminal{}, "none"},
		{"unknown", "fancy\x1b", terminal, `--progress "fancy\x1b": must be one of plain, live, json, none`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(tt.kind, tt.on, Kinds)
			if err != nil {
				if code := cmdutil.ExitCode(err); code != cmdutil.ExitUsage {
					t.Errorf("exit code %d", code)
				}
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The text of the last event says whether the pull has ended, failed or stopped.
func TestPullEvents(t *testing.T) {
	var got []string
	handle := PullEvents(func(e runner.Event) { got = append(got, fmt.Sprint(e.Text, " ", e.Pull.Failed)) })
	handle(docker.PullProgress{Image: "a", Layers: 2, LayersDone: 1, Bytes: 1e6, Total: 2e6})
	handle(docker.PullProgress{Image: "a", Done: true})
	handle(docker.PullProgress{Image: "b", Done: true, Failed: true})
	handle(docker.PullProgress{Image: "c", Done: true, Stopped: true})
	want := "a: 1 of 2 layers, 1 of 2 MB false|a: the pull has ended false|b: the pull has failed true|c: the pull was stopped false"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// While a view is active, Messages sends lines to the view and prints them after
// it. UnlessDiverted drops lines, and HeldOnly only holds them.
func TestMessages(t *testing.T) {
	var out bytes.Buffer
	m := &cmdutil.Messages{W: &out}
	write := func(text string) {
		t.Helper()
		if n, err := m.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
		}
	}
	write("before\n")
	_, _ = m.UndivertedWriter().Write([]byte("step 1\n"))
	_, _ = m.HoldWriter().Write([]byte("never: plain lines have it\n"))
	var shown []string
	m.Divert(func(line string) { shown = append(shown, line) }, true)
	write("stopping\n")
	_, _ = m.UndivertedWriter().Write([]byte("step 2\n"))
	for range cmdutil.MaxHeldLines + 5 {
		_, _ = m.HoldWriter().Write([]byte("a failed\n"))
	}
	write("removed 2\nand 3\n")
	if want := "stopping|removed 2|and 3"; strings.Join(shown, "|") != want || out.String() != "before\nstep 1\n" {
		t.Errorf("shown %q, printed %q", shown, out.String())
	}
	m.Release()
	write("after\n")
	want := "before\nstep 1\nstopping\n" + strings.Repeat("a failed\n", cmdutil.MaxHeldLines-1) + "removed 2\nand 3\n" +
		"      and 6 more lines; results.json has all of it\nafter\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
