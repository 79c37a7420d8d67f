package runner

import (
	"strings"
	"testing"
)

func TestChangedAbilities(t *testing.T) {
	read, edit := Tool{"read", "file"}, Tool{"edit", "file"}
	for name, tt := range map[string]struct {
		old, now *Abilities
		want     string
	}{
		"nothing":          {nil, nil, ""},
		"nothing yet":      {nil, &Abilities{Tools: []Tool{edit, read}}, "set of tools (edit, read)"},
		"nothing any more": {&Abilities{Tools: []Tool{read}}, nil, "set of tools (read)"},
		"another order":    {&Abilities{Tools: []Tool{read, edit}}, &Abilities{Tools: []Tool{edit, read}}, ""},
		"another kind":     {&Abilities{Tools: []Tool{read}}, &Abilities{Tools: []Tool{{"read", "mcp"}}}, "set of tools (read)"},
		"another text": {
			&Abilities{Skills: []Skill{{"pdf", "1", "aa"}, {"plan", "1", "cc"}}}, &Abilities{Skills: []Skill{{"pdf", "1", "bb"}, {"plan", "1", "cc"}}},
			"set of skills (pdf)",
		},
		"a server's version": {&Abilities{MCP: []Server{{"git", "", "1"}}}, &Abilities{MCP: []Server{{"git", "", "2"}}}, "set of MCP servers (git)"},
		"many": {
			&Abilities{Tools: []Tool{{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}}, &Abilities{Skills: []Skill{{Name: "s"}}},
			"set of tools (a, b, c, and 2 more); set of skills (s)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(changedAbilities(tt.old, tt.now), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
