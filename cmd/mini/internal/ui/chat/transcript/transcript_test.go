package transcript_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat/transcript"
	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/trajectories"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// show returns the printed lines and, after a line "LIVE", what is still arriving.
func show(width int, plain bool, items ...any) string {
	var rows []string
	t := transcript.New(plain, func(row string) { rows = append(rows, row) })
	now := start
	t.Now = func() time.Time { return now }
	t.Resize(width, 24)
	t.State = chat.State{ShowThinking: true, Started: start}
	for _, item := range items {
		switch item := item.(type) {
		case time.Duration:
			now = now.Add(item)
		case string:
			t.Input(item)
		default:
			t.Show(item)
		}
	}
	if live := t.Live(10); len(live) > 0 {
		rows = append(append(rows, "LIVE"), live...)
	}
	return strings.Join(rows, "\n")
}

func think(step int) events.PhaseStarted {
	return events.PhaseStarted{Phase: events.PhaseThinking, Step: step}
}

func text(s string) events.TextDelta   { return events.TextDelta{Text: s} }
func reason(s string) events.TextDelta { return events.TextDelta{Text: s, Thinking: true} }

func reply(content, reasoning string, commands ...string) trajectories.Message {
	m := trajectories.Message{Cause: trajectories.CauseReply, Actions: commands}
	m.Content, m.Reasoning = content, reasoning
	return m
}

func started(command string) events.PhaseStarted {
	return events.PhaseStarted{Phase: events.PhaseRunning, Command: command}
}

func output(s string) events.OutputChunk { return events.OutputChunk{Data: []byte(s)} }

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

var ended = trajectories.Execution{Duration: 1.2e9}

func TestTranscript(t *testing.T) {
	for _, tt := range []struct {
		name        string
		items       []any
		rich, plain string // without styles
	}{
		{
			"reasoning stays above the reply",
			[]any{reason("why\n\nso"), text("**A"), text("**\nb"), reply("**A**\nb", "why\n\nso")},
			"why\n\nso\n\nA\nb", "why\n\nso\n\n**A**\nb",
		},
		{
			"what arrives",
			[]any{reason("why\nso"), text("a\nb c"), text("d")},
			"why\nso\n\na\nLIVE\nb cd", "why\nso\n\na\nLIVE\nb cd",
		},
		{"a reply at once", []any{reply("a\n```bash\nls\n```\nb", "why", "ls")}, "why\n\na\n\nb", "why\n\na\n\nb"},
		{
			"a command in a stream",
			[]any{think(2), text("a\n```bash\nls -l\n```"), reply("a\n```bash\nls -l\n```", "", "ls -l"), started("ls -l"), output("x\n"), ended},
			"── step 2 ──\n\na\n\n$ ls -l\nx\nexit 0 · 1.2s", "--- step 2 ---\n\na\n\n$ ls -l\nx\nexit 0",
		},
		{
			"a repeated request",
			[]any{text("first\nsec"), events.TextDelta{Restart: true}, text("again"), reply("again", "")},
			"first\n… the request is repeated; the text above is discarded\n\nagain",
			"first\n... the request is repeated; the text above is discarded\n\nagain",
		},
		{
			"a reply that stops",
			[]any{text("first\nsec"), think(2)},
			"first\nsec\n… the reply is incomplete\n\n── step 2 ──\n", "first\nsec\n... the reply is incomplete\n\n--- step 2 ---\n",
		},
		{
			"lost pieces of a reply",
			[]any{text("first\nsec"), events.Dropped{Count: 2}, text("rd"), reply("first\nsecond\nthird", "")},
			"first\n… not all of it was shown because the terminal is too slow; the whole reply:\n\nfirst\nsecond\nthird",
			"first\n... not all of it was shown because the terminal is too slow; the whole reply:\n\nfirst\nsecond\nthird",
		},
		{"lines of a command", []any{started("a <<E\n b\nE"), ended}, "$ a <<E\n b\nE\nexit 0 · 1.2s", "$ a <<E\n   b\n  E\nexit 0"},
		{
			"a long output",
			[]any{started("seq 20"), output(numbers(1, 20)), ended},
			"$ seq 20\n" + numbers(1, 5) + "… 9 more lines: Ctrl-O shows the full output\n" + numbers(15, 20) + "exit 0 · 1.2s",
			"$ seq 20\n" + numbers(1, 5) + "... 9 more lines\n" + numbers(15, 20) + "exit 0",
		},
		{
			"twelve lines",
			[]any{started("seq 12"), output(numbers(1, 12)), ended},
			"$ seq 12\n" + numbers(1, 12) + "exit 0 · 1.2s", "$ seq 12\n" + numbers(1, 12) + "exit 0",
		},
		{
			"an output that arrives",
			[]any{started("seq 20"), output(numbers(1, 18) + "1"), output("9")},
			"$ seq 20\n" + numbers(1, 5) + "LIVE\n⋮ 14 lines\n" + strings.TrimSuffix(numbers(11, 19), "\n"),
			"$ seq 20\n" + numbers(1, 5) + "LIVE\n⋮ 14 lines\n" + strings.TrimSuffix(numbers(11, 19), "\n"),
		},
		{
			"an output that may be the same",
			[]any{think(2), started("a"), output("1\n2\n"), ended, started("b"), output("1\n2\n"), output("3"), output("\n4")},
			"── step 2 ──\n\n$ a\n1\n2\nexit 0 · 1.2s\n\n$ b\n1\n2\n3\nLIVE\n4", "--- step 2 ---\n\n$ a\n1\n2\nexit 0\n\n$ b\n1\n2\n3\nLIVE\n4",
		},
		{
			"equal outputs",
			[]any{think(2), started("a"), output("1\n2\n"), ended, think(3), started("b"), output("1\n"), output("2\n"), ended, started("c"), output("1\n3\n"), ended},
			"── step 2 ──\n\n$ a\n1\n2\nexit 0 · 1.2s\n\n── step 3 ──\n\n$ b\nsame output as step 2\nexit 0 · 1.2s\n\n$ c\n1\n3\nexit 0 · 1.2s",
			"--- step 2 ---\n\n$ a\n1\n2\nexit 0\n\n--- step 3 ---\n\n$ b\nsame output as step 2\nexit 0\n\n$ c\n1\n3\nexit 0",
		},
		{
			"a submission",
			[]any{
				reply("ok\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```", "", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
				started("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), output("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n"), ended,
			},
			"ok\n\n✓ done", "ok\n\ndone",
		},
		{
			"the outcome has the time of the session",
			[]any{8 * time.Second, trajectories.Outcome{Class: trajectories.Interrupted, ExitStatus: "Interrupted", Steps: 1, Start: start.Add(3 * time.Second), End: start.Add(8 * time.Second)}},
			"■ Interrupted · 1 step · 8s\n", "",
		},
		{
			"slash commands and messages",
			[]any{
				"/d",
				chat.Notice{Text: "1 file"},
				chat.Notice{Text: "2 files"},
				"use tabs",
				trajectories.Message{Cause: trajectories.CauseSteer, Message: reply("The user says: use tabs", "").Message},
			},
			"❯ /d\n\n1 file\n2 files\n\n❯ use tabs", "1 file\n2 files",
		},
		{
			"notes of mini break between words",
			[]any{chat.Notice{Text: "a note that is much longer than one row, with the option --continue"}},
			"a note that is much longer than one row,\nwith the option --continue", "a note that is much longer than one row,\nwith the option --continue",
		},
	} {
		for _, plain := range []bool{false, true} {
			got, want := show(40, plain, tt.items...), tt.rich
			if plain {
				want = tt.plain
				if got != ansi.Strip(got) {
					t.Errorf("%s: plain lines have styles: %q", tt.name, got)
				}
			}
			if got = ansi.Strip(got); got != want {
				t.Errorf("%s, plain %t:\n%s\nwant\n%s", tt.name, plain, got, want)
			}
		}
	}
}

// Outputs are faint, except for lines with colours of their own and those of diffs.
func TestOutputStyles(t *testing.T) {
	got := show(80, false, started("git diff"), output("a\n\x1b[31mred\x1b[m\n@@ -1 +1 @@\n+new\n"), ended)
	for _, want := range []string{steps.Faint("a"), "\x1b[31mred\x1b[m", "\x1b[32m+new\x1b[m"} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}

// Long reasoning is shortened, and Ctrl-O shows all of it.
func TestLongReasoning(t *testing.T) {
	var rows []string
	tr := transcript.New(false, func(row string) { rows = append(rows, row) })
	tr.Resize(80, 24)
	tr.State.ShowThinking = true
	for i := range 100 {
		tr.Show(reason(fmt.Sprintf("thought %d\n", i)))
	}
	if live := tr.Live(3); len(live) != 3 || !strings.Contains(live[2], "thought 99") {
		t.Errorf("live: %q", live)
	}
	tr.Show(text("so\n"))
	last := ansi.Strip(strings.Join(rows[len(rows)-4:], "\n"))
	if last != "thought 23\n… 76 more lines: Ctrl-O shows the full reasoning\n\nso" || !strings.Contains(tr.FullText(), "thought 77\n") {
		t.Errorf("the last lines are %q", last)
	}
}
