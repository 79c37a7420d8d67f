package term

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestPathCompletion(t *testing.T) {
	s := newScene(t, 60, 20)
	s.m.listPaths = func() tea.Msg { return nil }
	s.keys("look at @")
	s.send(pathsMsg{"cmd/mini/main.go", "main_test.go", "README.md", "docs/a\x1b]0;title\x07", "a\nb", "internal/Read.go"})
	for _, tt := range []struct{ keys, want string }{
		{"", "@cmd/mini/main.go @main_test.go @README.md @internal/Read.go"},
		{"re", "@README.md @internal/Read.go"},
		{"a", "@README.md @internal/Read.go"},
		{"x", ""},
		{"<backspace><backspace><backspace><backspace>main", "@main_test.go @cmd/mini/main.go"},
	} {
		s.keys(tt.keys)
		var labels []string
		for _, m := range s.m.input.matches() {
			labels = append(labels, m.label)
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("after %q: %q, want %q", tt.keys, got, tt.want)
		}
	}
	s.keys("<tab><tab>")
	if got := s.m.input.value(); got != "look at @cmd/mini/main.go" {
		t.Errorf("the input is %q", got)
	}
	if !strings.Contains(s.terminal.String(), "@main_test.go") {
		t.Errorf("no list:\n%s", s.terminal)
	}
	s.keys(" and me@")
	if m := s.m.input.matches(); m != nil {
		t.Errorf("an address is completed: %v", m)
	}
	if s.m.listPaths != nil {
		t.Error("the paths are listed twice")
	}
}
