package skills

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/tools"
)

// Permissions is the meaning of a skill's allowed-tools in mini.
type Permissions struct {
	// Unrestricted says that everything is allowed; the other fields are then
	// empty.
	Unrestricted bool
	// Bash says that shell commands are allowed. If Patterns is not empty, only
	// commands that match one of the patterns, such as "git add:*" or "git *",
	// are allowed.
	Bash     bool
	Patterns []string
	// Tools are the allowed tools of mini-tool, sorted; some may not exist in a
	// session.
	Tools []string
	// Warnings say which names have no effect, or may have none.
	Warnings []string
}

// miniTools are the names of mini's own tools.
var miniTools = []string{
	"read", "write", "edit", "skill", "search", "note", "notes", "goal", "recall", "delegate", "chain", "board",
}

// otherNames maps tool names of other systems, in lower case, to mini's tools.
var otherNames = map[string][]string{
	"view": {"read"}, "notebookread": {"read"}, "read_file": {"read"}, "readfile": {"read"},
	"create": {"write"}, "write_file": {"write"}, "writefile": {"write"},
	"multiedit": {"edit"}, "str_replace": {"edit"}, "edit_file": {"edit"}, "str_replace_editor": {"read", "write", "edit"},
	"websearch": {"search"}, "web_search": {"search"},
	"task": {"delegate"}, "agent": {"delegate"},
	"todowrite": {"goal"}, "todoread": {"goal"},
	"memory": {"note", "notes"},
}

// shellNames are the names that systems give their shell tool. shellOnlyTools
// are tools of other systems whose work shell commands do in mini.
var (
	shellNames     = []string{"bash", "shell", "terminal", "run_command", "execute"}
	shellOnlyTools = []string{"grep", "glob", "ls", "find", "webfetch", "web_fetch", "notebookedit", "bashoutput", "killshell", "killbash"}
)

// Permissions returns what the skill allows. For the main agent they are only
// advice; for a subagent that runs under the skill they are enforced.
func (s Skill) Permissions() Permissions {
	if s.AllowedTools == nil {
		return Permissions{Unrestricted: true}
	}
	return ParseAllowedTools(s.AllowedTools)
}

// ParseAllowedTools returns the permissions for a list of tool names of mini or
// other systems. The tool "skill" is always allowed. "*" allows everything.
func ParseAllowedTools(allowed []string) Permissions {
	p := Permissions{Tools: []string{ToolName}}
	allCommands := false // Bash is listed without a pattern
	for _, entry := range allowed {
		if entry == "*" {
			return Permissions{Unrestricted: true}
		}
		name, pattern, hasPattern := strings.Cut(entry, "(")
		pattern = strings.TrimSuffix(pattern, ")")
		lowerName := strings.ToLower(name)
		switch {
		case slices.Contains(shellNames, lowerName):
			p.Bash = true
			if hasPattern && pattern != "" && pattern != "*" && pattern != ":*" {
				p.Patterns = append(p.Patterns, pattern)
			} else {
				allCommands = true
			}
			continue
		case slices.Contains(shellOnlyTools, lowerName):
			p.Warnings = append(p.Warnings, fmt.Sprintf("%.60q is not a tool of mini; allow bash for it", entry))
			continue
		case slices.Contains(miniTools, lowerName):
			p.Tools = append(p.Tools, lowerName)
		case otherNames[lowerName] != nil:
			p.Tools = append(p.Tools, otherNames[lowerName]...)
		case !isToolName(name):
			p.Warnings = append(p.Warnings, fmt.Sprintf("%.60q is not a tool name", entry))
			continue
		default:
			p.Tools = append(p.Tools, name)
			text := fmt.Sprintf("%.60q is not a tool of mini; it has an effect only if the configuration adds a tool of this name", entry)
			if near := tools.Nearest(name, miniTools); near != "" {
				text += "; did you mean " + near + "?"
			}
			p.Warnings = append(p.Warnings, text)
		}
		if hasPattern {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%.60q: patterns in parentheses apply to bash only", entry))
		}
	}
	if allCommands {
		p.Patterns = nil
	}
	slices.Sort(p.Tools)
	p.Tools = slices.Compact(p.Tools)
	return p
}

func isToolName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
