package term

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

// The marks of a reply are styled, and its text is unchanged.
func TestReplyRows(t *testing.T) {
	const bold, faint, cyan, green, reset = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[32m", "\x1b[m"
	for _, tt := range []struct {
		name, text string
		commands   []string
		want       string
	}{
		{"heading", "# A\nb", nil, bold + "# A" + reset + "\nb"},
		{"code and emphasis", "run `go` **now**", nil, "run " + cyan + "`go`" + reset + " " + bold + "**now**" + reset},
		{"items", "- a\n  10. " + strings.Repeat("word ", 6), nil, cyan + "- " + reset + "a\n" + cyan + "  10. " + reset + "word word word\n      word word word"},
		{"block", "a\n\n```go\n- b\n\n# c\n```\n\n\nd", nil, "a\n\n" + faint + "```go" + reset + "\n- b\n\n# c\n" + faint + "```" + reset + "\n\nd"},
		{"block of a diff", "```diff\n@@ -1 +1,2 @@\n a\n+b\n```", nil, faint + "```diff" + reset + "\n" + cyan + "@@ -1 +1,2 @@" + reset + "\n a\n" + green + "+b" + reset + "\n" + faint + "```" + reset},
		{"command", "a\n\n```bash\nls\n```\n\nb", []string{"ls"}, "a\n\nb"},
		{"unfinished block", "```\n# a", nil, faint + "```" + reset + "\n# a"},
		{"hostile", "`\x1b[31m`", nil, cyan + "`�[31m`" + reset},
	} {
		if got := strings.Join(replyRows(tt.text, tt.commands, 22), "\n"); got != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}

// A streaming reply looks the same as a complete one, also when its beginning is dropped.
func TestStreamingReply(t *testing.T) {
	text := "```\n" + strings.Repeat("# no `heading`\n", 8000) + "```\n# the heading"
	var live liveTurn
	for len(text) > 0 {
		n := min(len(text), 777)
		live.reply.add(text[:n])
		text = text[n:]
		rows := live.rows(60, 10, true)
		for _, row := range rows {
			if strings.Contains(row, "no") && row != ansi.Strip(row) {
				t.Fatalf("code is styled: %q", row)
			}
		}
		if text == "" && !strings.Contains(rows[len(rows)-1], "\x1b[1m# the heading") {
			t.Errorf("the heading is not styled: %q", rows)
		}
	}
}

// Hostile replies are rendered in linear time, and fit.
func TestHostileReply(t *testing.T) {
	start := time.Now()
	for _, piece := range []string{"`a` ", "**a", "- ", "- - 1. ", "```\n", "# # ", "@@ -1 +1 @@\n+a\n", strings.Repeat("`a` ", 900) + "\n"} {
		for _, row := range replyRows(strings.Repeat(piece, 200_000/len(piece)), nil, 40) {
			if tty.Width(row) > 40 {
				t.Fatalf("%q is too wide", row)
			}
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
