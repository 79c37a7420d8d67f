package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/trajectories"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestRenderers(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	outcome := func(class trajectories.Class, status string) *trajectories.Outcome {
		return &trajectories.Outcome{Class: class, ExitStatus: status, Steps: 4, Cost: 0.123, Start: start, End: start.Add(75 * time.Second)}
	}
	submitted := outcome(trajectories.Submitted, "Submitted")
	submitted.Submission = []byte("diff")
	limit := outcome(trajectories.Limit, "TimeExceeded")
	limit.Submission, limit.Autosubmitted = []byte("diff"), true
	lost := outcome(trajectories.Environment, "ContainerDied")
	lost.Error, lost.PartialPatch = "run command: ContainerDied", []byte("half")
	missing := outcome(trajectories.Environment, "ImageNotFound")
	missing.Error, missing.Hint = "pull image nope: ImageNotFound", "check the name"

	events := []runner.Event{
		{Type: runner.RunStarted, Total: 5, Skipped: 1, Workers: 2},
		{Type: runner.AttemptStarted, Instance: "a__b-1", Attempt: 1},
		{Type: runner.AttemptResumed, Instance: "a__b-1", Attempt: 1, Step: 31, Total: 30},
		{Type: runner.PhaseChanged, Phase: runner.PhaseStarting, Instance: "a__b-1"}, // not printed
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a__b-1", Text: "waiting for quota"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a__b-1", Text: "waiting for a node: 0/3 nodes \x1b[2Jare\navailable"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a__b-1", Text: "waiting for a node: 0/4 nodes are available"}, // the same kind
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "a__b-1", Text: "waiting for quota"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseQueued, Instance: "c__d-3", Text: "waiting for quota"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseScrubbing, Instance: "a__b-1", Text: "img:1"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseScrubbing, Instance: "a__b-1"},
		{Type: runner.PhaseChanged, Phase: runner.PhaseRebuilding, Instance: "a__b-1", Done: 12, Total: 30, Command: "make test"},
		{Type: runner.SandboxReady, Instance: "a__b-1", Elapsed: 0.31, Warnings: []string{"the image has no /testbed; commands start in /"}},
		{Type: runner.CommandFinished, Instance: "a__b-1", Step: 1, Command: "ls -la"},
		{Type: runner.CommandFinished, Instance: "a__b-1", Step: 1, ExitCode: 127, Command: strings.Repeat("a long command ", 12)},
		{Type: runner.FormatError, Instance: "a__b-1", Step: 2},
		{Type: runner.PullProgress, Text: "nope: waiting"},
		{Type: runner.ProviderChanged, Provider: &runner.ProviderState{Limit: 8, InFlight: 8, Waiting: 55, PauseSeconds: 3}},
		{Type: runner.ProviderChanged, Provider: &runner.ProviderState{Limit: 9, InFlight: 9}},
		{Type: runner.AttemptFinished, Instance: "a__b-1", Outcome: submitted},
		{Type: runner.AttemptFinished, Instance: "c__d-22", Outcome: limit},
		{Type: runner.AttemptFinished, Instance: "c__d-3", Outcome: lost, WillRetry: true},
		{Type: runner.AttemptStarted, Instance: "c__d-3", Attempt: 2},
		{Type: runner.SandboxReady, Instance: "c__d-3", Elapsed: 61, Warnings: []string{"nothing is in /tmp/c__d-3-4711"}},
		{Type: runner.SandboxReady, Instance: "c__d-4", Elapsed: 61, Warnings: []string{"nothing is in /tmp/c__d-4-815"}},
		{Type: runner.AttemptFinished, Instance: "c__d-3", Outcome: missing},
		{Type: runner.EvaluationStarted, Total: 500, Workers: 2},
		{Type: runner.EvaluationRunStarted, Instance: "a__b-1", Attempt: 1, Text: "verdict"},
		{Type: runner.Verdict, Instance: "a__b-1", Attempt: 1, Verdict: "infrastructure", Text: "the sandbox was lost", Elapsed: 3, WillRetry: true},
		{Type: runner.EvaluationRunStarted, Instance: "a__b-1", Attempt: 2, Text: "verdict"},
		{Type: runner.EvaluationRunStarted, Instance: "a__b-1", Attempt: 3, Text: "rerun"},
		{Type: runner.EvaluationRunStarted, Instance: "a__b-1", Attempt: 4, Text: "without_suspect"},
		{Type: runner.Verdict, Instance: "a__b-1", Verdict: "resolved", Elapsed: 75},
		{Type: runner.Verdict, Instance: "c__d-22", Verdict: "unresolved", Text: "1 of 3 tests failed", Elapsed: 8},
		{Type: runner.Verdict, Instance: "c__d-3", Verdict: "infrastructure", Text: "the image cannot be \x1b[31mpulled"},
		{Type: runner.Verdict, Instance: "c__d-4", Verdict: "apply_failed", Text: "no way to apply the patch works", Elapsed: 2},
		{Type: runner.Verdict, Instance: "c__d-5", Verdict: "resolved"},
		{Type: runner.Verdict, Instance: "c__d-6", Verdict: "empty", Text: "the prediction has no patch"},
		{Type: runner.EvaluationFinished, Total: 5},
		{Type: runner.Warning, Text: "something \x1b[31mred\u202e and\nmore"},
	}
	for n := range 100 { // most are dropped by the rate limit
		events = append(events, runner.Event{Type: runner.CommandFinished, Instance: "c__d-3", Step: n, TimedOut: true, ExitCode: -1, Command: "sleep"})
	}
	ids := []string{"a__b-1", "c__d-22"}
	for name, show := range map[string]func(io.Writer) func(runner.Event){
		"plain.txt": func(w io.Writer) func(runner.Event) { return report.NewPlainPrinter(w, ids).Event },
		"patches.txt": func(w io.Writer) func(runner.Event) {
			p := report.NewPlainPrinter(w, ids)
			p.Patches = 6
			return func(e runner.Event) {
				if e.Type == runner.Verdict || e.Type == runner.EvaluationRunStarted {
					p.Event(e)
				}
			}
		},
		"problems.txt": func(w io.Writer) func(runner.Event) { return problemPrinter(w, ids) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // with a fake clock
				var out bytes.Buffer
				event := show(&out)
				for _, e := range events {
					event(e)
				}
				golden(t, name, out.String())
			})
		})
	}
}

// problemPrinter returns a function that prints only problems.
func problemPrinter(w io.Writer, ids []string) func(runner.Event) {
	p := report.NewPlainPrinter(w, ids)
	return func(e runner.Event) {
		p.State.Update(e)
		p.PrintProblem(e)
	}
}

// On a terminal, lines are wrapped between words, and lines about steps are truncated.
func TestPlainWidth(t *testing.T) {
	end := &trajectories.Outcome{Class: trajectories.Environment, ExitStatus: "ImageNotFound", Error: "pull image docker.io/swebench/sweb.eval.x86_64.a_1776_b-1:latest: ImageNotFound: no such image", Hint: "check the name"}
	events := []runner.Event{
		{Type: runner.RunStarted, Total: 1, Workers: 1},
		{Type: runner.CommandFinished, Instance: "astropy__astropy-12907", Step: 1, Command: strings.Repeat("漢字 long ", 12)},
		{Type: runner.PullProgress, Text: "docker.io/swebench/sweb.eval.x86_64.a_1776_b-1:latest: 1 of 2 layers, 310 of 1250 MB"},
		{Type: runner.Warning, Instance: "astropy__astropy-12907", Text: "the image has no /testbed; commands start in / and whatever the image says of it is honored"},
		{Type: runner.AttemptFinished, Instance: "astropy__astropy-12907", Outcome: end},
	}
	for _, width := range []int{0, 40, 80} {
		var out bytes.Buffer
		p := report.NewPlainPrinter(&out, []string{"astropy__astropy-12907"})
		p.Width = func() int { return width }
		for _, e := range events {
			p.Event(e)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if w := ansi.StringWidthWc(line); width > 0 && w > width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%d cells of %d: %q", w, width, line)
			}
		}
		golden(t, fmt.Sprintf("plain-%d.txt", width), out.String())
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain žluť 🐎":         "plain žluť 🐎",
		"a\nb\tc\rd":           "a b c d",
		"\x1b]0;title\x07":     "\ufffd]0;title\ufffd",
		"\u202eabc\u2066":      "\ufffdabc\ufffd",
		"\x9b31m":              "\ufffd31m",
		"\u200bzero":           "\ufffdzero",
		"del\x7f\x00":          "del\ufffd\ufffd",
		"bad \xff utf8":        "bad \ufffd utf8",
		"next\u0085line\ufe0f": "next\ufffdline\ufe0f",
	} {
		got := text.Printable(in)
		if got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
		if strings.ContainsAny(got, "\x1b\n\x07") {
			t.Errorf("%q can move the cursor", got)
		}
	}
}
