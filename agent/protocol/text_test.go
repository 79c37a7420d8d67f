package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model"
)

func TestText(t *testing.T) {
	tests := []struct {
		name, reply string
		want        []string
	}{
		{"one block", "THOUGHT: look\n\n```bash\nls -la\n```\n", []string{"ls -la"}},
		{"mini-swe-agent's mark", "```mswea_bash_command\nls\n```", []string{"ls"}},
		{"several lines", "```bash\ncd src\nls\n```", []string{"cd src\nls"}},
		{"none", "I am done.", nil},
		{"another language", "```python\nprint(1)\n```", nil},
		{"two", "```bash\na\n```\n```bash\nb\n```", []string{"a", "b"}},
		{"the mark must end the line", "```bash ls\n```", nil},
		{"spaces after the mark", "```bash  \nls\n```", []string{"ls"}},
		{"empty command", "```bash\n\n```", []string{""}},
		{"a block without an end", "```bash\nls", nil},
		{"fence in mid-line is no end", "```bash\necho '```' x\n```", []string{"echo '```' x"}},
		{"reply with CRLF throughout", "look\r\n```bash\r\nls\r\npwd\r\n```\r\n", []string{"ls\npwd"}},
		{"a CR of the command's own", "```bash\nprintf 'a\r'\nls\n```", []string{"printf 'a\r'\nls"}},
		{"trailing spaces are the command's", "```bash\nls  \n```", []string{"ls  "}},
		{"beyond ASCII", "```bash\necho 'žluťoučký 🐎'\n```", []string{"echo 'žluťoučký 🐎'"}},
	}
	p, err := NewText("")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, commandsOf(p, tt.reply)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func commandsOf(p Protocol, reply string) []string {
	return p.Parse(model.Reply{Message: model.Message{Role: model.Assistant, Content: reply}}, 1).Commands()
}

func TestInvalidPatterns(t *testing.T) {
	for name, tt := range map[string]struct{ pattern, want string }{
		"not a pattern": {"(", "missing closing )"},
		"no group":      {"```bash", "0 groups"},
		"two groups":    {"(a)(b)", "2 groups"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewText(tt.pattern)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

// For any reply, the command is a part of it, and a reply with one block around
// a text gives that text.
func FuzzText(f *testing.F) {
	for _, s := range []string{"ls", "a\nb", "```", "```bash\nx\n```", "a\r\nb\r", "\xff\x00"} {
		f.Add(s)
	}
	p, err := NewText("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range commandsOf(p, text) {
			if !strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), strings.ReplaceAll(c, "\r\n", "\n")) {
				t.Errorf("command %q is not in the reply %q", c, text)
			}
		}
		if strings.Contains(text, "```") || strings.Contains(text, "\r") || !utf8.ValidString(text) {
			return
		}
		if got := commandsOf(p, "thought\n```bash\n"+text+"\n```\n"); len(got) != 1 || got[0] != text {
			t.Errorf("a block around %q gives %q", text, got)
		}
	})
}
