package configs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// builtinTools are the names of mini's own tools.
var builtinTools = []string{
	"read", "write", "edit", "skill", "note", "notes", "goal", "recall", "delegate", "chain", "board", "search", tools.HelpName,
}

// IsBuiltinTool reports whether a built-in tool has this name, even if the tool is off.
func IsBuiltinTool(name string) bool { return slices.Contains(builtinTools, name) }

// validateTools checks the section tools. The tools packages check, before a run starts,
// whether programs, variables and servers exist.
func (r *Resolved) validateTools() []error {
	var errs []error
	if n := r.Tools.MaxOutput; n < 0 || n > env.MaxToolResponse {
		errs = append(errs, r.errorf("tools.max_output", "%d is not a number of bytes up to %d; 0 means 64 KB", n, env.MaxToolResponse))
	}
	if c := r.Tools.Search; len(c) > 0 && c[0] == "" {
		errs = append(errs, r.errorf("tools.search", "the program has no name"))
	}
	var names []string
	for i, t := range r.Tools.Host {
		errs = append(errs, validateHost(toolItem{r, fmt.Sprintf("tools.host[%d]", i)}, t, names)...)
		names = append(names, t.Name)
	}
	names = nil
	for i, s := range r.Tools.MCP {
		errs = append(errs, validateServer(toolItem{r, fmt.Sprintf("tools.mcp[%d]", i)}, s, names)...)
		names = append(names, s.Name)
	}
	return errs
}

// toolItem is an item of tools.host or tools.mcp.
type toolItem struct {
	r    *Resolved
	path string
}

// errorf returns an error about a key of the item, or about the item if the key is missing.
func (item toolItem) errorf(key, format string, args ...any) error {
	if _, ok := item.r.origins[item.path+"."+key]; ok {
		return item.r.errorf(item.path+"."+key, format, args...)
	}
	return item.r.errorf(item.path, format, args...)
}

// validateCommon checks the settings that programs and servers share. names are the
// names of the items before this one.
func (item toolItem) validateCommon(name string, names, command, variables []string) []error {
	var errs []error
	if err := tools.CheckName(name); name == "" {
		errs = append(errs, item.errorf("name", "the name is missing"))
	} else if err != nil {
		errs = append(errs, item.errorf("name", "%v", err))
	}
	if name != "" && slices.Contains(names, name) {
		errs = append(errs, item.errorf("name", "%.60q is already the name of another item", name))
	}
	if len(command) > 0 && command[0] == "" {
		errs = append(errs, item.errorf("command", "the name of the program is empty"))
	}
	for _, v := range variables { // v may contain a secret: do not repeat it
		if !isVariableName(v) {
			errs = append(errs, item.errorf("env", "an item is not a valid name of a variable; list names only, without values"))
		}
	}
	return errs
}

// isVariableName is like IsVariable, but refuses only empty names and names with =, a NUL, a
// newline or a space.
func isVariableName(v string) bool { return v != "" && !strings.ContainsAny(v, "=\x00\n ") }

func validateHost(item toolItem, t tools.HostTool, names []string) []error {
	errs := item.validateCommon(t.Name, names, t.Command, t.Env)
	if IsBuiltinTool(t.Name) && t.Name != tools.HelpName {
		errs = append(errs, item.errorf("name", "%q is the name of a built-in tool; choose another", t.Name))
	}
	if len(t.Command) == 0 {
		errs = append(errs, item.errorf("command", "the command is missing: list the program and its arguments, for example [python3, issues.py]"))
	}
	if n := t.MaxOutput; n < 0 || n > env.MaxToolResponse {
		errs = append(errs, item.errorf("max_output", "%d is not a number of bytes up to %d; 0 means tools.max_output", n, env.MaxToolResponse))
	}
	return errs
}

func validateServer(item toolItem, s tools.MCPServer, names []string) []error {
	errs := item.validateCommon(s.Name, names, s.Command, s.Env)
	if len(s.Command) > 0 == (s.URL != "") {
		errs = append(errs, item.errorf("command", "set either command or url"))
	}
	if s.URL == "" && s.TokenEnv != "" {
		errs = append(errs, item.errorf("token_env", "token_env is for a url; pass variables to a command with env"))
	}
	if s.TokenEnv != "" && !isVariableName(s.TokenEnv) { // the value may be the token itself: do not repeat it
		errs = append(errs, item.errorf("token_env", "not a valid name; it names the environment variable with the token"))
	}
	if text := urlProblem(s.URL); text != "" {
		errs = append(errs, item.errorf("url", "%s", text))
	}
	return errs
}

// urlProblem returns what is wrong with a server's URL, without repeating it.
func urlProblem(text string) string {
	if text == "" {
		return ""
	}
	const hint = ", which would be written to the files of a run; put it in a variable and name that in token_env"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "not a URL that starts with http:// or https://"
	case u.User != nil:
		return "the url contains a user name or password" + hint
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "the query of the url is invalid"
	}
	for name, values := range query {
		if LooksSecret(name) || slices.ContainsFunc(values, looksRandom) {
			return "the query of the url seems to contain a key" + hint
		}
	}
	return ""
}

// longWord matches sequences of at least 20 letters, digits and underscores.
var longWord = lazyregexp.New(`[A-Za-z0-9_]{20,}`)

// looksRandom reports whether a value contains a long mix of letters and digits, like an
// API key, or starts with sk-.
func looksRandom(value string) bool {
	for _, w := range longWord.FindAllString(value, -1) {
		if strings.ContainsAny(w, "0123456789") && strings.ContainsAny(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") {
			return true
		}
	}
	return strings.HasPrefix(value, "sk-")
}
