package inspect

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/hostile"
	"github.com/minibench/mini/trajectories"
)

func TestLinesOf(t *testing.T) {
	bar := strings.Repeat("\r 10% of something", 500) + "\rdone\r"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"plain":                {"a\nb\n", []string{"a", "b"}},
		"no end":               {"a\n\nb", []string{"a", "", "b"}},
		"empty":                {"", nil},
		"CRLF":                 {"a\r\nb\r\n", []string{"a", "b"}},
		"tabs":                 {"a\tb", []string{"a       b"}},
		"a bar":                {" 10%\r 20%\r100%\nnext", []string{"100%", "next"}},
		"a bar of many states": {bar + "\nnext", []string{"done", "next"}},
		"colours go on":        {"\x1b[31mred\nstill\x1b[0m\nno", []string{"\x1b[31mred\x1b[0m", "\x1b[31mstill\x1b[0m", "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range linesOf(tt.text, true) {
				got = append(got, s.fit(tt.text, true)...)
			}
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "\x1b[m", "\x1b[0m")
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A line of megabytes is several pieces, none of which cuts a character or a
// sequence.
func TestLongLine(t *testing.T) {
	text := strings.Repeat("日\x1b[32m", 100_000)
	for _, s := range linesOf(text, true) {
		if s.end-s.start > maxLine {
			t.Fatalf("a piece of %d bytes", s.end-s.start)
		}
		for _, line := range s.fit(text, true) {
			if plain := ansi.Strip(line); strings.Trim(plain, "日") != "" {
				t.Fatalf("a piece is %q", plain)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap("\x1b[31mabc日本d\x1b[m", 4)
	want := []string{"\x1b[31mabc\x1b[m", "\x1b[31m日本\x1b[m", "\x1b[31md\x1b[m"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, piece := range wrap(strings.Repeat("ab日", 50), 7) {
		if widthOf(piece) > 7 {
			t.Errorf("%q is too wide", piece)
		}
	}
	m := newMatcher("lo w")
	if got := marked("\x1b[31mhello\x1b[m world", m); got != "hel\x1b[7mlo w\x1b[morld" {
		t.Errorf("marked: %q", got)
	}
}

// Whatever stands in a trajectory, the terminal is not steered: on the screen, on
// any page, in the list and as text.
func TestHostileTrajectory(t *testing.T) {
	for _, a := range hostile.Attacks() {
		t.Run(a.Name, func(t *testing.T) {
			it := &Item{ID: a.Text, Path: "x", Status: a.Text, State: Ended, Verdict: a.Text, Flags: []string{a.Text}, Selected: true}
			tr := &Trajectory{Item: it, Patch: a.Text, PatchFrom: a.Text, Problem: a.Text}
			ts := &trajectories.Transcript{Outcome: &trajectories.Outcome{Class: trajectories.Class(a.Text), ExitStatus: a.Text, Error: a.Text, Hint: a.Text, Stack: a.Text, Warnings: []string{a.Text}}}
			reply := trajectories.Entry{Ran: []trajectories.Ran{{Execution: trajectories.Execution{Command: a.Text, Output: []byte(a.Text), Exception: a.Text}, Told: -1, Tools: []trajectories.Called{{ToolCall: trajectories.ToolCall{
				Name: a.Text, Args: []string{a.Text}, Errors: []byte(a.Text), Details: []byte(a.Text), ExitCode: 1,
			}}}}}}
			reply.Cause, reply.Content, reply.Reasoning = trajectories.CauseReply, a.Text, a.Text
			told := trajectories.Entry{}
			told.Role, told.Cause, told.Content = "user", trajectories.Cause(a.Text), a.Text
			ts.Entries = []trajectories.Entry{told, reply}
			tr.pages(ts)
			m := testView(t, 80, 24)
			m.list.take(Batch{Items: []*Item{it, {ID: "b", State: Broken, Problem: a.Text, Selected: true, Path: "b"}}, Notes: []string{a.Text}})
			calm(t, m)
			m.reader = &reader{item: it, reasoning: true}
			m.opened(opened{item: it, t: tr})
			for range tr.Pages {
				calm(t, m)
				m.reader.turn(m.reader.page + 1)
			}
			m.see(thePatch)
			calm(t, m)
			m.say(true, "%s", a.Text)
			calm(t, m)
			var out bytes.Buffer
			for _, p := range tr.Pages {
				if err := writePage(&out, "t", p, true, true); err != nil {
					t.Fatal(err)
				}
			}
			if bad := hostile.Steers(out.String(), hostile.LineEnds|hostile.Colours); bad != "" {
				t.Errorf("as text it steers: %s", bad)
			}
		})
	}
}

func calm(t *testing.T, m *view) {
	t.Helper()
	shown := m.View().Content
	if bad := hostile.Steers(shown, hostile.LineEnds|hostile.Colours); bad != "" {
		t.Errorf("it steers: %s: %.300q", bad, shown)
	}
	for i, line := range strings.Split(shown, "\n") {
		if w := ansi.StringWidthWc(line); w > m.width || i >= m.height {
			t.Errorf("line %d has %d columns: %q", i, w, line)
		}
	}
}
