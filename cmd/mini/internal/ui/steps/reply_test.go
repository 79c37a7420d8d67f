package steps_test

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ui/steps"
	"github.com/minibench/mini/cmd/mini/internal/ui/terminal"
)

func TestReply(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		commands   []string
		styled     string // with <b> bold, <i> italic, <f> faint, <u> underlined, <c> cyan, <g> green, <m> magenta, </> the end
		plain      string
	}{
		{"heading", "# A\nb", nil, "<b>A</>\nb", "# A\nb"},
		{"emphasis", "run `go` **now `x`** or *later*", nil, "run <c>go</> <b>now </><bc>x</> or <i>later</>", "run `go` **now `x`** or\n*later*"},
		{"no emphasis", "2 * 3 * 4 and __init__", nil, "2 * 3 * 4 and __init__", "2 * 3 * 4 and __init__"},
		{"link", "see [docs](a.b) and [a.b](a.b)", nil, "see <u>docs</><f> (a.b)</> and <u>a.b</>", "see [docs](a.b) and\n[a.b](a.b)"},
		{"items", "- a\n  10. " + strings.Repeat("word ", 6), nil, "<c>- </>a\n<c>  10. </>word word word\n      word word word", "- a\n  10. word word word\n      word word word"},
		{"quote", "> a " + strings.Repeat("word ", 5), nil, "<f>│ </><i>a word word word word</>\n<f>│ </><i>word</>", "> a word word word word\nword"},
		{"block", "a\n```go\nfunc f() // x\n\n# c\n```\nd", nil, "a\n\n<m>func</> f() <f>// x</>\n\n# c\n\nd", "a\n```go\nfunc f() // x\n\n# c\n```\nd"},
		{"block of a diff", "```diff\n@@ -1 +1,2 @@\n a\n+b\n```", nil, "<c>@@ -1 +1,2 @@</>\n a\n<g>+b</>", "```diff\n@@ -1 +1,2 @@\n a\n+b\n```"},
		{"long line of code", "```\n" + strings.Repeat("x", 40) + "\n```", nil, strings.Repeat("x", 40), "```\n" + strings.Repeat("x", 40) + "\n```"},
		{"command", "a\n\n```bash\nls\n```\n\nb", []string{"ls"}, "a\n\nb", "a\n\nb"},
		{"two blocks", "```sh\npwd\n```\n```sh\nls\n```", []string{"ls"}, "pwd", "```sh\npwd\n```"},
		{"unfinished block", "```\n# a", nil, "# a", "```\n# a"},
		{"table", "| a | b |\n|---|--:|\n| `x` | 100 |\n\nc", nil, "<b>a</>    <b>b</>\n<f>─</>  <f>───</>\n<c>x</>  100\n\nc", "a      b\n---  ---\n`x`  100\n\nc"},
		{"no table", "| a | b |\nc", nil, "| a | b |\nc", "| a | b |\nc"},
		{"blank lines", "\n\na\n\n\nb\n\n", nil, "a\n\nb", "a\n\nb"},
		{"hostile", "`\x1b[31m`", nil, "<c>\ufffd[31m</>", "`\ufffd[31m`"},
	} {
		styled := strings.NewReplacer("<b>", "\x1b[1m", "<i>", "\x1b[3m", "<f>", "\x1b[2m", "<u>", "\x1b[4m", "<c>", "\x1b[36m", "<g>", "\x1b[32m",
			"<m>", "\x1b[35m", "<bc>", "\x1b[1;36m", "</>", "\x1b[m").Replace(tt.styled)
		for _, plain := range []bool{false, true} {
			for _, size := range []int{1, 7, len(tt.text)} { // the text arrives in pieces
				reply := steps.Reply{Width: 24, Plain: plain}
				var rows []string
				for rest := tt.text; rest != ""; {
					n := min(size, len(rest))
					rows, rest = append(rows, reply.Write(rest[:n])...), rest[n:]
					reply.Live(3)
				}
				got, want := strings.Join(append(rows, reply.Close(tt.commands)...), "\n"), styled
				if plain {
					want = tt.plain
				}
				if got != want {
					t.Errorf("%s, plain %t, pieces of %d:\n%q, want\n%q", tt.name, plain, size, got, want)
				}
			}
		}
	}
}

// What is not finished is shown while it arrives.
func TestReplyLive(t *testing.T) {
	reply := steps.Reply{Width: 20}
	rows := reply.Write("a line\nthe next li")
	if len(rows) != 1 || strings.Join(reply.Live(5), "|") != "the next li" {
		t.Errorf("%q, and live %q", rows, reply.Live(5))
	}
	rows = reply.Write("ne\n```bash\none\ntwo\nthr")
	if live := strings.Join(reply.Live(2), "|"); len(rows) != 1 || live != "two|thr" {
		t.Errorf("%q, and live %q", rows, live)
	}
}

// Hostile replies are rendered in linear time, and fit.
func TestHostileReply(t *testing.T) {
	start := time.Now()
	for _, piece := range []string{
		"`a` ", "**a", "*a* ", "[a](b) ", "- ", "- - 1. ", "```\n", "# # ", "@@ -1 +1 @@\n+a\n", "|a", "|a|\n|-|\n", "> ", "a", " ", strings.Repeat("`a` ", 900) + "\n",
	} {
		reply := steps.Reply{Width: 40, Break: true}
		rows := reply.Write(strings.Repeat(piece, 60_000/len(piece)))
		reply.Live(10)
		for _, row := range append(rows, reply.Close(nil)...) {
			if terminal.Width(row) > 40 {
				t.Fatalf("%.20q: %q is too wide", piece, row)
			}
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestWrapWords(t *testing.T) {
	for _, tt := range []struct {
		line  string
		width int
		want  string
	}{
		{"one two three", 8, "one two|three"},
		{"run mini --continue now", 10, "run mini|--continue|now"},
		{"  indented text", 10, "  indented|text"},
		{"a/very/long/path x", 8, "a/very/l|ong/path|x"},
		{"one  two", 20, "one  two"},
		{"日本語 日本語", 7, "日本語|日本語"},
		{"no width at all", 0, "no width at all"},
	} {
		if got := strings.Join(steps.Wrap(tt.line, tt.width), "|"); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.line, tt.width, got, tt.want)
		}
		styled := steps.Bold(tt.line)
		rows := steps.Wrap(styled, tt.width)
		if got := ansi.Strip(strings.Join(rows, "|")); got != tt.want {
			t.Errorf("styled %q: %q", tt.line, got)
		}
		for _, row := range rows {
			if !strings.HasPrefix(row, "\x1b[1m") || !strings.HasSuffix(row, "\x1b[m") {
				t.Errorf("%q does not set its own style", row)
			}
		}
	}
}
