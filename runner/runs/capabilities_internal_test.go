package runs

import (
	"strings"
	"testing"
)

func TestChangedCapabilities(t *testing.T) {
	read, edit := Tool{"read", "file"}, Tool{"edit", "file"}
	for name, tt := range map[string]struct {
		old, now *Capabilities
		want     string
	}{
		"nothing":          {nil, nil, ""},
		"nothing yet":      {nil, &Capabilities{Tools: []Tool{edit, read}}, "set of tools"},
		"nothing any more": {&Capabilities{Tools: []Tool{read}}, nil, "set of tools"},
		"another order":    {&Capabilities{Tools: []Tool{read, edit}}, &Capabilities{Tools: []Tool{edit, read}}, ""},
		"another kind":     {&Capabilities{Tools: []Tool{read}}, &Capabilities{Tools: []Tool{{"read", "mcp"}}}, "set of tools"},
		"another text": {
			&Capabilities{Skills: []Skill{{"pdf", "1", "aa"}, {"plan", "1", "cc"}}}, &Capabilities{Skills: []Skill{{"pdf", "1", "bb"}, {"plan", "1", "cc"}}},
			"set of skills",
		},
		"a server's version": {&Capabilities{MCP: []MCPServer{{"git", "", "1"}}}, &Capabilities{MCP: []MCPServer{{"git", "", "2"}}}, "set of MCP servers"},
		"many": {
			&Capabilities{Tools: []Tool{{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}}, &Capabilities{Skills: []Skill{{Name: "s"}}},
			"set of tools; set of skills",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(ChangedCapabilities(tt.old, tt.now), "; "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
