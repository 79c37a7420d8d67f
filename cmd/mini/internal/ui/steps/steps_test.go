package steps_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/internal/sanitize/attacktest"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/timeline"
)

func textsOf(lines []steps.Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return all
}

func TestPlain(t *testing.T) {
	step := &timeline.Step{Items: []*timeline.Item{
		{Kind: timeline.Reasoning, Text: "hm"},
		{Kind: timeline.Reply, Text: "I look."},
		{Kind: timeline.Command, Text: "ls\t-l\nls", Execution: &trajectories.Execution{}, Results: []*timeline.Item{
			{Kind: timeline.Note, Text: "exit 0"}, {Kind: timeline.Output, Text: " 10%\r100%\n\x1b[31mred\nstill\x1b[0m\r\n\n"},
		}},
		{Kind: timeline.Command, Text: "rm\x1b[2J"},
	}}
	got := textsOf(steps.Renderer{Plain: true, Labels: true}.Step(step))
	want := []string{
		"--- reply", "I look.", "--- command", "$ ls      -l", "  ls", "exit 0", "100%", "\x1b[31mred\x1b[m", "\x1b[31mstill\x1b[m", "",
		"--- command without a result", "$ rm\ufffd[2J",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := textsOf(steps.Renderer{Reasoning: true}.Step(step)); got[0] != steps.Faint("hm") || got[1] != "I look." {
		t.Errorf("without labels: %q", got)
	}
}

func TestFold(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	renderer := steps.Renderer{Plain: true, Fold: map[timeline.Kind]steps.Fold{timeline.Output: {Head: 1, Tail: 2}}}
	for text, want := range map[string][]string{
		b.String():                   {"line 0", "… 97 lines folded", "line 98", "line 99"},
		"a\nb\nc\n":                  {"a", "b", "c"},
		"a\nb\nc\nd":                 {"a", "… 1 line folded", "c", "d"},
		"\n\n\n\n":                   {"", "… 1 line folded", "", ""},
		strings.Repeat("x", 200<<10): {strings.Repeat("x", 64<<10-2), "xx", "… 1 line folded", strings.Repeat("x", 64<<10-2), "xx"},
	} {
		got := textsOf(renderer.Item(&timeline.Item{Kind: timeline.Output, Text: text}))
		if !slices.Equal(got, want) {
			t.Errorf("%.20q: got %.300q, want %.300q", text, got, want)
		}
	}
	if got := renderer.Item(&timeline.Item{Kind: timeline.Message, Text: b.String()}); len(got) != 100 {
		t.Errorf("another kind has %d lines", len(got))
	}
}

func TestWrap(t *testing.T) {
	got := steps.HardWrap("\x1b[31mabc日本d\x1b[m", 4)
	want := []string{"\x1b[31mabc\x1b[m", "\x1b[31m日本\x1b[m", "\x1b[31md\x1b[m"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, kind := range []timeline.Kind{timeline.Message, timeline.Command, timeline.Output, timeline.Patch, timeline.Note} {
		lines := steps.Renderer{Width: 9}.Item(&timeline.Item{Kind: kind, Label: "label", Text: strings.Repeat("ab日 ", 50) + "\n+second"})
		sources := 0
		for _, l := range lines {
			if ansi.StringWidthWc(l.Text) > 9 {
				t.Errorf("%q is too wide", l.Text)
			}
			if l.Source != "" {
				sources++
			}
		}
		if sources != 3 {
			t.Errorf("%d lines have a source", sources)
		}
	}
}

// A search finds a text of a reply that is broken between two rows, and marks.
func TestSourcesOfReply(t *testing.T) {
	lines := steps.Renderer{Width: 12}.Item(&timeline.Item{Kind: timeline.Reply, Text: "# a\n\nno such **file** or folder\n| a |\n|---|\n| b |"})
	want := []steps.Line{
		{steps.Bold("a"), "# a"},
		{},
		{"no such " + steps.Bold("file"), "no such **file** or folder"},
		{"or folder", ""},
		{steps.Bold("a"), "| a | |---| | b |"},
		{steps.Faint("─"), ""},
		{"b", ""},
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q\nwant %q", lines, want)
	}
}

// Untrusted text cannot control the terminal, at any width.
func TestUntrustedText(t *testing.T) {
	for _, a := range attacktest.Attacks() {
		for _, kind := range []timeline.Kind{timeline.Message, timeline.Command, timeline.Output, timeline.Patch} {
			for _, width := range []int{0, 6, 80} {
				renderer := steps.Renderer{Width: width, Reasoning: true, Fold: map[timeline.Kind]steps.Fold{timeline.Output: {Head: 3, Tail: 3}}}
				for _, l := range renderer.Item(&timeline.Item{Kind: kind, Label: a.Text, Text: a.Text}) {
					if bad := attacktest.FindControl(l.Text, attacktest.Colours); bad != "" {
						t.Fatalf("%s, kind %q: the line controls the terminal: %s: %.300q", a.Name, kind, bad, l.Text)
					}
				}
			}
		}
	}
}

func BenchmarkLargeOutput(b *testing.B) {
	text := strings.Repeat("some \x1b[31mred\x1b[0m line of output\twith a few words in it\n", 3<<20/60)
	for b.Loop() {
		steps.Renderer{Width: 159}.Item(&timeline.Item{Kind: timeline.Output, Text: text})
	}
}
