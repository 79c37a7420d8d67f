package skills

import (
	"fmt"
	"slices"
	"strings"
)

// Grant is what the allowed-tools of a skill come to here.
type Grant struct {
	// Any says that the skill restricts nothing; the rest is empty then.
	Any bool
	// Bash says that commands of the shell are allowed. Where Patterns is not
	// empty, only those it names, as "git add:*" or "git *": the text that a
	// command begins with.
	Bash     bool
	Patterns []string
	// Tools are names of tools as mini-tool has them, in order; some may not exist
	// in a session.
	Tools []string
	// Notes are sentences about names that come to nothing, or may.
	Notes []string
}

// Allows says that a tool may be called by the name that mini-tool has for it.
func (g Grant) Allows(tool string) bool { return g.Any || slices.Contains(g.Tools, tool) }

// own are the names of tools that mini itself has.
var own = []string{
	"read", "write", "edit", "skill", "search", "note", "notes", "goal", "recall", "delegate", "chain", "board",
}

// elsewhere are names that other systems have for them, in small letters.
var elsewhere = map[string][]string{
	"view": {"read"}, "notebookread": {"read"}, "read_file": {"read"}, "readfile": {"read"},
	"create": {"write"}, "write_file": {"write"}, "writefile": {"write"},
	"multiedit": {"edit"}, "str_replace": {"edit"}, "edit_file": {"edit"}, "str_replace_editor": {"read", "write", "edit"},
	"websearch": {"search"}, "web_search": {"search"},
	"task": {"delegate"}, "agent": {"delegate"},
	"todowrite": {"goal"}, "todoread": {"goal"},
	"memory": {"note", "notes"},
}

// shells are names for the shell, looks those for what the shell is used for here.
var (
	shells = []string{"bash", "shell", "terminal", "run_command", "execute"}
	looks  = []string{"grep", "glob", "ls", "find", "webfetch", "web_fetch", "notebookedit", "bashoutput", "killshell", "killbash"}
)

// Grant is what s allows. A model without a sub-agent is only advised by it;
// whoever runs a sub-agent under s holds it to this.
func (s Skill) Grant() Grant {
	if s.AllowedTools == nil {
		return Grant{Any: true}
	}
	return GrantOf(s.AllowedTools)
}

// GrantOf is what a list of allowed tools comes to, by names of mini's or of other
// systems. "skill" is always among them: a skill's text may be read by who works
// under it. "*" allows everything.
func GrantOf(allowed []string) Grant {
	g := Grant{Tools: []string{ToolName}}
	all := false // a bare Bash, whatever patterns stand beside it
	for _, given := range allowed {
		if given == "*" {
			return Grant{Any: true}
		}
		name, pattern, bracket := strings.Cut(given, "(")
		pattern = strings.TrimSuffix(pattern, ")")
		low := strings.ToLower(name)
		switch {
		case slices.Contains(shells, low):
			g.Bash = true
			if bracket && pattern != "" && pattern != "*" && pattern != ":*" {
				g.Patterns = append(g.Patterns, pattern)
			} else {
				all = true
			}
			continue
		case slices.Contains(looks, low):
			g.Notes = append(g.Notes, fmt.Sprintf("%.60q is nothing that mini has; it is done with bash here, which has to be allowed by its name", given))
			continue
		case slices.Contains(own, low):
			g.Tools = append(g.Tools, low)
		case elsewhere[low] != nil:
			g.Tools = append(g.Tools, elsewhere[low]...)
		case !toolName(name):
			g.Notes = append(g.Notes, fmt.Sprintf("%.60q is no name of a tool", given))
			continue
		default:
			g.Tools = append(g.Tools, name)
			text := fmt.Sprintf("%.60q is no tool of mini's; it counts where the configuration has a tool of this name", given)
			if near := nearest(name, own); near != "" {
				text += "; did you mean " + near + "?"
			}
			g.Notes = append(g.Notes, text)
		}
		if bracket {
			g.Notes = append(g.Notes, fmt.Sprintf("%.60q: what stands in brackets is heeded for bash only", given))
		}
	}
	if all {
		g.Patterns = nil
	}
	slices.Sort(g.Tools)
	g.Tools = slices.Compact(g.Tools)
	return g
}

func toolName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}
