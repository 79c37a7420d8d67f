package term

import (
	"strings"
	"testing"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// Long lines break before a space, or within a word that does not fit; nothing is lost.
func TestBreakLine(t *testing.T) {
	for _, tt := range []struct {
		line string
		w    int
		want []string
	}{
		{"short", 10, []string{"short"}},
		{"one two three four", 10, []string{"one two", " three", " four"}},
		{"one two three four", 11, []string{"one two", " three four"}},
		{"one  two", 5, []string{"one", "  two"}},
		{"    indented text", 10, []string{"    indent", "ed text"}},
		{"cat /a/path/without/spaces", 10, []string{"cat /a/pat", "h/without/", "spaces"}},
		{"日本語 日本語 x", 8, []string{"日本語", " 日本語", " x"}},
		{"ab e\u0301e\u0301e\u0301 c", 6, []string{"ab e\u0301e\u0301e\u0301", " c"}},
		{"🇩🇪🇫🇷", 3, []string{"🇩🇪", "🇫🇷"}},
		{"          ", 4, []string{"    ", "    ", "  "}},
		{"x", 0, []string{"x"}},
	} {
		got := breakLine(tt.line, tt.w)
		if strings.Join(got, "|") != strings.Join(tt.want, "|") || strings.Join(got, "") != tt.line {
			t.Errorf("%q in %d columns is %q, want %q", tt.line, tt.w, got, tt.want)
		}
		for _, row := range got {
			if tty.Width(row) > max(tt.w, 2) {
				t.Errorf("%q has %d columns of %d", row, tty.Width(row), tt.w)
			}
		}
	}
}

// On a narrow screen, lines break between words, and continuation rows are marked.
func TestNarrow(t *testing.T) {
	s := newScene(t, 30, 24)
	command := "sed -i 's/old/new/' docs/guide.md README.md"
	s.turn(1, "", "I replace it.", command)
	s.ask(chat.Question{Kind: chat.AskConfirm, Text: "Run this command?", Command: command})
	s.show(denies(command, "user", "", "leave the guide alone and change the other one"))
	for _, want := range []string{"|── step 1 · $0.03 ──\n", "|$ sed -i 's/old/new/'\n| ↳ docs/guide.md README.md\n", "|not run (user): leave the\n|guide alone and change the\n|other one\n"} {
		if !strings.Contains(s.terminal.String(), want) {
			t.Errorf("no %q on the screen:\n%s", want, s.terminal)
		}
	}
}
