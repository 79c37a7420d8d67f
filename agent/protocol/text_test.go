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
		{"a longer fence", "````bash\ncat <<'E'\n```\ninner\n```\nE\n````\n", []string{"cat <<'E'\n```\ninner\n```\nE"}},
		{"tildes", "~~~bash\ncat <<'E'\n```\nE\n~~~\n", []string{"cat <<'E'\n```\nE"}},
		{"a block in a here-document", "```bash\ncat > R.md <<'E'\n# R\n```python\nx = 1\n```\nend\nE\n```\n", []string{"cat > R.md <<'E'\n# R\n```python\nx = 1\n```\nend\nE"}},
		{"a block without a name in it", "```bash\ncat > R.md <<E\n```\nx\n```\nend\nE\nls\n```\nthen", []string{"cat > R.md <<E\n```\nx\n```\nend\nE\nls"}},
		{"a block in quotes", "```bash\ngit commit -m 'so\n```\nx\n```\n'\n```", []string{"git commit -m 'so\n```\nx\n```\n'"}},
		{"a here-document in a substitution", "```bash\necho \"$(cat <<'E'\n```\nx\n```\nE\n)\"\n```", []string{"echo \"$(cat <<'E'\n```\nx\n```\nE\n)\""}},
		{"other blocks around it", "```python\nx\n```\nso\n```bash\nls\n```\nand\n```\ny\n```", []string{"ls"}},
		{"a word of the server's after it", "```bash\nls\n```<|im_end|>", []string{"ls"}},
		{"an error of the model's at the end", "```bash\necho 'it\n```\n", []string{"echo 'it"}},
		{"thinking", "<think>maybe\n```bash\nrm a\n```\n</think>\n```bash\nls\n```", []string{"ls"}},
		{"thinking alone", "<think>maybe\n```bash\nrm a\n```\n</think>", nil},
		{"thinking without an end", "<think>maybe\n```bash\nrm a\n```\n", nil},
		{"thinking whose start is in the prompt", "maybe\n```bash\nrm a\n```\n</think>\n\n```bash\nls\n```", []string{"ls"}},
		{"another name, capitals, twice", "\n<Thinking>\n```bash\nrm a\n```\n</Thinking>\n<think></think>\n```bash\nls\n```", []string{"ls"}},
		{"a command with these tags", "```bash\ngrep '<think>' a | grep -v '</think>'\n```", []string{"grep '<think>' a | grep -v '</think>'"}},
		{"other tags", "[THINK]\n```bash\nrm a\n```\n[/THINK]\n<seed:think>\n```bash\nrm a\n```\n</seed:think>◁think▷\n```bash\nrm a\n```\n◁/think▷```bash\nls\n```", []string{"ls"}},
		{"thinking after a line", "<|im_start|>assistant\nSo.\n<think>maybe\n```bash\nrm a\n```\n</think>", nil},
		{"text after the closing tag", "maybe\n```bash\nrm a\n```\n</think>I look.", nil},
		{"a closing tag after the block", "maybe\n```bash\nrm a\n```</think> I look.", nil},
		{"a command with a closing tag", "so\n```bash\ncat > a <<'E'\nx</think>\n</think>\nE\n```", []string{"cat > a <<'E'\nx</think>\n</think>\nE"}},
		{"CRLF and a block in a here-document", "```bash\r\ncat > a <<'E'\r\n```\r\nx\r\n```\r\nE\r\n```\r\n", []string{"cat > a <<'E'\n```\nx\n```\nE"}},
		{"a backslash of the model's at the end", "```bash\nls \\\n```", []string{"ls \\"}},
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	tag, err := NewText("<cmd>(.*?)</cmd>")
	if err != nil {
		t.Fatal(err)
	}
	if got := commandsOf(tag, "<cmd>cat <<'E'\n```\nE</cmd>"); len(got) != 1 {
		t.Errorf("a fence in a command that a tag ends: %q", got)
	}
	for _, reply := range []string{"```sh\nls\n```", "```sh\nls\n```\nthen\n```\nx\n```", "````\n```sh\nls\n```\n````"} {
		if got := commandsOf(p, reply); len(got) != 1 || got[0] != "ls" {
			t.Errorf("%q gives %q", reply, got)
		}
	}
}

// A closing tag that a command contains does not end it.
func TestXMLInHereDocument(t *testing.T) {
	p, err := NewXML("")
	if err != nil {
		t.Fatal(err)
	}
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
