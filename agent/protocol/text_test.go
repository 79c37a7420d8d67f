package protocol

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/golden"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

func TestText(t *testing.T) {
	p, err := NewText("")
	require.NoError(t, err)
	golden.Cases(t, "testdata/text.txt", func(_ *testing.T, input string) string {
		return fmt.Sprintf("%q", commandsOf(p, strings.TrimSuffix(input, "\n")))
	})
	for name, tt := range map[string]struct{ reply, want string }{
		"reply with CRLF throughout":          {"look\r\n```bash\r\nls\r\npwd\r\n```\r\n", "ls\npwd"},
		"spaces after the mark":               {"```bash  \nls\n```", "ls"},
		"trailing spaces are the command's":   {"```bash\nls  \n```", "ls  "},
		"a CR of the command's own":           {"```bash\nprintf 'a\r'\nls\n```", "printf 'a\r'\nls"},
		"CRLF and a block in a here-document": {"```bash\r\ncat > a <<'E'\r\n```\r\nx\r\n```\r\nE\r\n```\r\n", "cat > a <<'E'\n```\nx\n```\nE"},
	} {
		assert.Equal(t, []string{tt.want}, commandsOf(p, tt.reply), "%s", name)
	}
}

// A reply whose command may be cut has a problem, and nothing of it is run.
func TestTextProblems(t *testing.T) {
	const sh = "```sh\\n(.*?)\\n```"
	tests := map[string]struct {
		pattern, reply string
		cut            bool
		want           string
	}{
		"no closing fence":                  {"", "```bash\ncat > R.md <<'E'\n```\nx\n```\nE\nthat is all", false, "here-document"},
		"cut in a here-document":            {"", "```bash\ncat > R.md <<'E'\n```\nx\n", true, "token limit"},
		"a quote that does not end":         {"", "```bash\necho 'it\n```\nand\n```\nx\n```", false, "quote"},
		"an inner block without quotes":     {"", "```bash\nls\n```python\nx\n```\nls\n```", false, "longer fence"},
		"a block that another one ends":     {"", "```bash\na\n```bash\nb\n```", false, ""},
		"a backslash at the end":            {"", "```bash\nls \\\n```\n-l", false, "backslash"},
		"own pattern, longer fence":         {sh, "````sh\nls\n```\nrm a\n````", false, "fence"},
		"own pattern, inner block":          {sh, "```sh\ncat <<'E'\n```python\nx\n```\nE\n```", false, "fence"},
		"own pattern, block without a name": {sh, "```sh\ncat <<'E'\n```\nx\n```\nE\n```", false, "here-document"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := NewText(test.pattern)
			require.NoError(t, err)
			finish := model.FinishStop
			if test.cut {
				finish = model.FinishLength
			}
			r := p.Parse(model.Reply{Message: model.Message{Content: test.reply}, FinishReason: finish}, 1)
			if r.Problem == "" || !strings.Contains(r.Problem, test.want) || len(r.Commands()) > 0 {
				t.Errorf("problem %q, commands %q", r.Problem, r.Commands())
			}
		})
	}
	p, err := NewText(sh)
	require.NoError(t, err)
	tag, err := NewText("<cmd>(.*?)</cmd>")
	require.NoError(t, err)
	assert.Equal(t, 1, len(commandsOf(tag, "<cmd>cat <<'E'\n```\nE</cmd>")), "a fence in a command that a tag ends")
	for _, reply := range []string{"```sh\nls\n```", "```sh\nls\n```\nthen\n```\nx\n```", "````\n```sh\nls\n```\n````"} {
		if got := commandsOf(p, reply); len(got) != 1 || got[0] != "ls" {
			t.Errorf("%q gives %q", reply, got)
		}
	}
}

// A closing tag that a command contains does not end it.
func TestXMLInHereDocument(t *testing.T) {
	p, err := NewXML("")
	require.NoError(t, err)
	for reply, want := range map[string]string{
		"<bash>\ncat > a.html <<'E'\n</bash>\nE\n</bash>":                 "cat > a.html <<'E'\n</bash>\nE",
		"<bash>\ncat > a.html <<'E'\n</think>\nE\n</bash>":                "cat > a.html <<'E'\n</think>\nE",
		"<think><bash>rm a</bash></think><bash>ls</bash>":                 "ls",
		"maybe <bash>rm a</bash></think> so <bash>ls</bash>":              "ls",
		"<thinking>\n<bash>rm a</bash>\n</thinking>\n<bash>\nls\n</bash>": "ls",
	} {
		if got := commandsOf(p, reply); len(got) != 1 || got[0] != want {
			t.Errorf("%q gives %q", reply, got)
		}
	}
}

// The work for a reply does not grow with the square of its length.
func TestManyBlocks(t *testing.T) {
	for name, reply := range map[string]string{
		"blocks":        strings.Repeat("```bash\nx\n```\n", 10_000),
		"open blocks":   strings.Repeat("```bash\n", 20_000),
		"inner fences":  "```bash\ncat <<'E'\n" + strings.Repeat("```\n", 30_000),
		"tags":          strings.Repeat("<bash>x</bash>", 10_000),
		"closing tags":  "<bash>echo '" + strings.Repeat("</bash>", 20_000),
		"thinking":      strings.Repeat("<think></think>", 10_000),
		"thinking ends": strings.Repeat("</think>\n", 10_000),
	} {
		for _, p := range all(t) {
			if r := p.Parse(model.Reply{Message: model.Message{Content: reply}}, 1); r.Problem == "" {
				t.Errorf("%s: %d commands", name, len(r.Commands()))
			}
		}
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
			assert.ErrorContains(t, err, tt.want)
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
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range commandsOf(p, text) {
			assert.Contains(t, strings.ReplaceAll(text, "\r\n", "\n"), strings.ReplaceAll(c, "\r\n", "\n"), "command %q is not in the reply %q", c, text)
		}
		if strings.Contains(text, "```") || strings.Contains(text, "\r") || !utf8.ValidString(text) {
			return
		}
		if got := commandsOf(p, "thought\n```bash\n"+text+"\n```\n"); len(got) != 1 || got[0] != text {
			t.Errorf("a block around %q gives %q", text, got)
		}
	})
}
