package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
)

func all(t *testing.T) map[string]Protocol {
	t.Helper()
	tag, err := NewXML("")
	require.NoError(t, err)
	return map[string]Protocol{Text: textProtocol{}, XML: tag, Tools: NewTools(false)}
}

// Each protocol parses the replies that it formats, and Translate keeps the
// commands.
func TestFormatAndParse(t *testing.T) {
	for _, command := range []string{"ls", "a\nb\n", "cat <<'X'\n<&>\nX", "echo '\"\\u0000'", "printf 'a\r\n'"} {
		for name, p := range all(t) {
			said := p.FormatReply("I look.", command)
			r := p.Parse(model.Reply{Message: said}, 1)
			if diff := cmp.Diff([]string{command}, r.Commands()); diff != "" || r.Problem != "" {
				t.Errorf("%s, %q: %s %s", name, command, diff, r.Problem)
			}
			for other, q := range all(t) {
				if name == XML && other != XML {
					continue // scripted replies are blocks or calls
				}
				again := q.Parse(model.Reply{Message: Translate(q, said)}, 1)
				if diff := cmp.Diff([]string{command}, again.Commands()); diff != "" || again.Problem != "" {
					t.Errorf("%s as %s, %q: %s %s", name, other, command, diff, again.Problem)
				}
			}
		}
	}
}

func TestTranslate(t *testing.T) {
	calls := []model.ToolCall{NewToolCall("a"), NewToolCall("b")}
	tests := map[string]struct {
		to    string
		given model.Message
		want  model.Message
	}{
		"a block as a call": {Tools, model.Message{Content: "hm\n\n```bash\nls\n```\n", Reasoning: "r"}, model.Message{
			Role: model.Assistant, Content: "hm", Reasoning: "r", ToolCalls: []model.ToolCall{NewToolCall("ls")},
		}},
		"a block as a tag":            {XML, model.Message{Content: "hm\n```bash\nls\n```"}, model.Message{Role: model.Assistant, Content: "hm\n\n<bash>\nls\n</bash>"}},
		"calls as a block":            {Text, model.Message{Content: "hm", ToolCalls: calls}, model.Message{Role: model.Assistant, Content: "hm\n\n```bash\na\nb\n```"}},
		"a thought with a block":      {Text, model.Message{Content: "```bash\nx\n```\n```bash\ny\n```", ToolCalls: calls[:1]}, model.Message{Role: model.Assistant, Content: "```bash\na\n```"}},
		"calls stay calls":            {Tools, model.Message{ToolCalls: []model.ToolCall{{Name: "x"}}}, model.Message{ToolCalls: []model.ToolCall{{Name: "x"}}}},
		"two blocks are wrong in all": {Tools, model.Message{Content: "```bash\na\n```\n```bash\nb\n```"}, model.Message{Content: "```bash\na\n```\n```bash\nb\n```"}},
		"no command":                  {XML, model.Message{Content: "hm"}, model.Message{Content: "hm"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.NoDiff(t, cmp.Diff(tt.want, Translate(all(t)[tt.to], tt.given)))
		})
	}
}

func TestXML(t *testing.T) {
	tests := []struct {
		name, reply string
		want        []string
		wrong       string
	}{
		{"one", "I look.\n<bash>\nls -la\n</bash>", []string{"ls -la"}, ""},
		{"in one line", "<bash>ls</bash>", []string{"ls"}, ""},
		{"no entities", "<bash>a &amp;&amp; b <c >d</bash>", []string{"a &amp;&amp; b <c >d"}, ""},
		{"CRLF throughout", "<bash>\r\na\r\nb\r\n</bash>", []string{"a\nb"}, ""},
		{"only one line end goes", "<bash>\n\na\n\n</bash>", []string{"\na\n"}, ""},
		{"none", "hm", nil, "no command"},
		{"a block is none", "```bash\nls\n```", nil, "no command"},
		{"open", "<bash>ls", nil, "no command"},
		{"another tag", "<bash2>ls</bash2>", nil, "no command"},
		{"two", "<bash>a</bash><bash>b</bash>", []string{"a", "b"}, "2 commands, and exactly one"},
		{"spoken of before", "I use <bash> now.\n<bash>ls</bash>", nil, "twice before </bash>"},
	}
	p := all(t)[XML]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := p.Parse(model.Reply{Message: model.Message{Content: tt.reply}}, 1)
			if diff := cmp.Diff(tt.want, r.Commands()); diff != "" || (tt.wrong == "") != (r.Problem == "") || !strings.Contains(r.Problem, tt.wrong) {
				t.Errorf("wrong is %q, commands (-want +got):\n%s", r.Problem, diff)
			}
		})
	}
}

func TestInvalidTags(t *testing.T) {
	for _, tag := range []string{"a b", "<a>", "1a", "-a", strings.Repeat("a", 65), "é"} {
		_, err := NewXML(tag)
		assert.Error(t, err, "%q is taken", tag)
	}
}

// Calls of a tool that was not offered are dropped, because without answers
// servers would reject the history.
func TestDropCalls(t *testing.T) {
	for name, p := range all(t) {
		r := p.Parse(model.Reply{Message: model.Message{Content: "x", ToolCalls: []model.ToolCall{NewToolCall("ls")}}}, 1)
		assert.Equal(t, name != Tools, len(r.Message.ToolCalls) == 0, "%s: %+v", name, r.Message)
	}
}

// ProviderData must agree with the calls that are answered.
func TestProviderData(t *testing.T) {
	ids := func(id string) model.Message {
		c := NewToolCall("ls")
		c.ID = id
		return model.Message{ToolCalls: []model.ToolCall{c}, ProviderData: []byte(`{}`)}
	}
	for name, tt := range map[string]struct {
		speaks string
		given  model.Message
		kept   bool
	}{
		"as it came":          {Tools, ids("a"), true},
		"with another id":     {Tools, ids(""), false},
		"without its calls":   {Text, ids("a"), false},
		"no calls to be lost": {Text, model.Message{Content: "x", ProviderData: []byte(`{}`)}, true},
	} {
		r := all(t)[tt.speaks].Parse(model.Reply{Message: tt.given}, 1)
		if kept := r.Message.ProviderData != nil; kept != tt.kept {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}

// For any reply, the command is a part of it, and a text without tags is
// formatted and parsed unchanged.
func FuzzXML(f *testing.F) {
	for _, s := range []string{"ls", "a\nb", "<bash>", "</bash>", "<bash>a</bash><bash>", "a\r\nb\r", "\xff\x00", "\n"} {
		f.Add(s)
	}
	p, err := NewXML("")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range p.Parse(model.Reply{Message: model.Message{Content: text}}, 1).Commands() {
			assert.Contains(t, strings.ReplaceAll(text, "\r\n", "\n"), strings.ReplaceAll(c, "\r\n", "\n"), "command %q is not in the reply %q", c, text)
		}
		if strings.Contains(text, "bash>") || strings.Contains(text, "\r") {
			return
		}
		r := p.Parse(model.Reply{Message: p.FormatReply("thought", text)}, 1)
		if len(r.Actions) != 1 || r.Actions[0].Command != text || r.Problem != "" {
			t.Errorf("tags around %q give %q, %s", text, r.Commands(), r.Problem)
		}
	})
}
