package skills

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// Permissions is the meaning of a skill's allowed-tools in mini.
type Permissions struct {
	// Unrestricted says that the skill restricts nothing; the other fields are
	// empty.
	Unrestricted bool
	// Bash says that shell commands are allowed. If Patterns is not empty, only
	// those that begin with one of them, such as "git add:*" or "git *".
	Bash     bool
	Patterns []string
	// Tools are the allowed tools of mini-tool, sorted; some may not exist in a
	// session.
	Tools []string
	// Warnings are sentences about names that have no effect, or may have none.
	Warnings []string
}

// miniTools are the names of mini's own tools.
var miniTools = []string{
	"read", "write", "edit", "skill", "search", "note", "notes", "goal", "recall", "delegate", "chain", "board",
}

// otherNames maps the names of other systems, in lower case, to mini's tools.
var otherNames = map[string][]string{
	"view": {"read"}, "notebookread": {"read"}, "read_file": {"read"}, "readfile": {"read"},
	"create": {"write"}, "write_file": {"write"}, "writefile": {"write"},
	"multiedit": {"edit"}, "str_replace": {"edit"}, "edit_file": {"edit"}, "str_replace_editor": {"read", "write", "edit"},
	"websearch": {"search"}, "web_search": {"search"},
	"task": {"delegate"}, "agent": {"delegate"},
	"todowrite": {"goal"}, "todoread": {"goal"},
	"memory": {"note", "notes"},
}

// shellNames are names of the shell. shellOnlyTools are tools of other systems that
// mini replaces by shell commands.
var (
	shellNames     = []string{"bash", "shell", "terminal", "run_command", "execute"}
	shellOnlyTools = []string{"grep", "glob", "ls", "find", "webfetch", "web_fetch", "notebookedit", "bashoutput", "killshell", "killbash"}
)

// Permissions returns what the skill allows. For the main agent this is only
// advice; for a subagent that runs under the skill it is enforced.
func (s Skill) Permissions() Permissions {
	if s.AllowedTools == nil {
		return Permissions{Unrestricted: true}
	}
	return ParseAllowedTools(s.AllowedTools)
}

// ParseAllowedTools returns the permissions for a list of allowed tools, by
// their names in mini or in other systems. The tool "skill" is always allowed.
// "*" allows everything.
func ParseAllowedTools(allowed []string) Permissions {
	g := Permissions{Tools: []string{ToolName}}
	allCommands := false // Bash is listed without a pattern
	for _, given := range allowed {
		if given == "*" {
			return Permissions{Unrestricted: true}
		}
		name, pattern, bracket := strings.Cut(given, "(")
		pattern = strings.TrimSuffix(pattern, ")")
		low := strings.ToLower(name)
		switch {
		case slices.Contains(shellNames, low):
			g.Bash = true
			if bracket && pattern != "" && pattern != "*" && pattern != ":*" {
				g.Patterns = append(g.Patterns, pattern)
			} else {
				allCommands = true
			}
			continue
		case slices.Contains(shellOnlyTools, low):
			g.Warnings = append(g.Warnings, fmt.Sprintf("%.60q is not a tool of mini; allow bash for it", given))
			continue
		case slices.Contains(miniTools, low):
			g.Tools = append(g.Tools, low)
		case otherNames[low] != nil:
			g.Tools = append(g.Tools, otherNames[low]...)
		case !isToolName(name):
			g.Warnings = append(g.Warnings, fmt.Sprintf("%.60q is not a tool name", given))
			continue
		default:
			g.Tools = append(g.Tools, name)
			text := fmt.Sprintf("%.60q is not a tool of mini; it has an effect only if the configuration adds a tool of this name", given)
			if near := tools.Nearest(name, miniTools); near != "" {
				text += "; did you mean " + near + "?"
			}
			g.Warnings = append(g.Warnings, text)
		}
		if bracket {
			g.Warnings = append(g.Warnings, fmt.Sprintf("%.60q: patterns in parentheses apply to bash only", given))
		}
	}
	if allCommands {
		g.Patterns = nil
	}
	slices.Sort(g.Tools)
	g.Tools = slices.Compact(g.Tools)
	return g
}

func isToolName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
