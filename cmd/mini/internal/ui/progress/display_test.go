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
	screen := Terminal{terminal: true, foreground: true, term: "xterm"}
	with := func(change func(*Terminal)) Terminal {
		d := screen
		change(&d)
		return d
	}
	tests := []struct {
		name, kind string
		on         Terminal
		want       string // of the choice, or of the error
	}{
		{"a terminal", "", screen, "live"},
		{"no terminal", "", Terminal{term: "xterm"}, "plain"},
		{"a dumb terminal", "", with(func(d *Terminal) { d.term = "dumb" }), "plain"},
		{"no TERM", "", with(func(d *Terminal) { d.term = "" }), "plain"},
		{"CI", "", with(func(d *Terminal) { d.ci = true }), "plain"},
		{"in the background", "", with(func(d *Terminal) { d.foreground = false }), "plain"},
		{"asked for in CI", "live", with(func(d *Terminal) { d.ci = true }), "live"},
		{"asked for in the background", "live", with(func(d *Terminal) { d.foreground = false }), "plain"},
		{"asked for without a terminal", "live", Terminal{term: "xterm"}, "--progress live needs a terminal on stderr; use plain"},
		{"asked for on a dumb one", "live", with(func(d *Terminal) { d.term = "dumb" }), "does not support TERM=dumb; use plain"},
		{"plain on a terminal", "plain", screen, "plain"},
		{"json", "json", screen, "json"},
		{"none", "none", Terminal{}, "none"},
		{"unknown", "fancy\x1b", screen, `--progress "fancy\x1b": must be one of plain, live, json, none`},
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

// Failed and stopped pulls are not reported as finished.
func TestPullEvents(t *testing.T) {
	var got []string
	tell := PullEvents(func(e runner.Event) { got = append(got, fmt.Sprint(e.Text, " ", e.Pull.Failed)) })
	tell(docker.PullProgress{Image: "a", Layers: 2, LayersDone: 1, Bytes: 1e6, Total: 2e6})
	tell(docker.PullProgress{Image: "a", Done: true})
	tell(docker.PullProgress{Image: "b", Done: true, Failed: true})
	tell(docker.PullProgress{Image: "c", Done: true, Stopped: true})
	want := "a: 1 of 2 layers, 1 of 2 MB false|a: the pull has ended false|b: the pull has failed true|c: the pull was stopped false"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is written while a view has the screen is shown there, and printed once
// it has not; what the view makes superfluous is not printed at all.
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
	_, _ = m.UnlessDiverted().Write([]byte("step 1\n"))
	_, _ = m.HeldOnly().Write([]byte("never: plain lines have it\n"))
	var shown []string
	m.Divert(func(line string) { shown = append(shown, line) }, true)
	write("stopping\n")
	_, _ = m.UnlessDiverted().Write([]byte("step 2\n"))
	for range cmdutil.MaxHeldLines + 5 {
		_, _ = m.HeldOnly().Write([]byte("a failed\n"))
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
