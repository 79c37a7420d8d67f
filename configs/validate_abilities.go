package configs

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// ownTools are the names of tools that mini itself has.
var ownTools = []string{
	"read", "write", "edit", "skill", "note", "notes", "goal", "recall", "delegate", "chain", "board", "search", tools.Help,
}

// OwnTool says that a name is that of a tool of mini's own, on or off.
func OwnTool(name string) bool { return slices.Contains(ownTools, name) }

// validateAbilities is about tools, as far as the configuration tells: whether a
// program, a variable or a server is there is found by whoever needs it, before
// anything is started.
func (r *Resolved) validateAbilities() []error {
	var errs []error
	if t := r.Tools.Timeout; !(t >= 0) || t > maxSeconds {
		errs = append(errs, r.errorf("tools.timeout", "%v is not a number of seconds between 0 and %d; 0 means a minute", t, int(maxSeconds)))
	}
	if n := r.Tools.MaxOutput; n < 0 || n > env.MaxToolAnswer {
		errs = append(errs, r.errorf("tools.max_output", "%d is not a number of bytes up to %d; 0 means 64 KB", n, env.MaxToolAnswer))
	}
	if c := r.Tools.Search; len(c) > 0 && c[0] == "" {
		errs = append(errs, r.errorf("tools.search", "the program has no name"))
	}
	var names []string
	for i, t := range r.Tools.Host {
		errs = append(errs, validateHost(ability{r, fmt.Sprintf("tools.host[%d]", i)}, t, names)...)
		names = append(names, t.Name)
	}
	names = nil
	for i, s := range r.Tools.MCP {
		errs = append(errs, validateServer(ability{r, fmt.Sprintf("tools.mcp[%d]", i)}, s, names)...)
		names = append(names, s.Name)
	}
	return errs
}

// ability is an item of a list of tools or servers.
type ability struct {
	r    *Resolved
	path string
}

// errorf is a mistake in a key of the item; where that is missing, in the item.
func (a ability) errorf(key, format string, args ...any) error {
	if _, ok := a.r.origins[a.path+"."+key]; ok {
		return a.r.errorf(a.path+"."+key, format, args...)
	}
	return a.r.errorf(a.path, format, args...)
}

// common finds what programs and servers have in common; names are those before it.
func (a ability) common(name string, names, command, variables []string, timeout float64) []error {
	var errs []error
	if err := tools.CheckName(name); name == "" {
		errs = append(errs, a.errorf("name", "the name is missing"))
	} else if err != nil {
		errs = append(errs, a.errorf("name", "%v", err))
	}
	if name != "" && slices.Contains(names, name) {
		errs = append(errs, a.errorf("name", "%.60q is the name of another one before it", name))
	}
	if len(command) > 0 && command[0] == "" {
		errs = append(errs, a.errorf("command", "the program has no name"))
	}
	for _, v := range variables { // maybe with a value, so it is not repeated
		if !isName(v) {
			errs = append(errs, a.errorf("env", "it names environment variables, whose values are not written here; what stands there is no such name"))
		}
	}
	if !(timeout >= 0) || timeout > maxSeconds {
		errs = append(errs, a.errorf("timeout", "%v is not a number of seconds between 0 and %d; 0 means tools.timeout", timeout, int(maxSeconds)))
	}
	return errs
}

// isName is IsVariable, but for names that other systems have, too.
func isName(v string) bool { return v != "" && !strings.ContainsAny(v, "=\x00\n ") }

func validateHost(a ability, t tools.HostTool, names []string) []error {
	errs := a.common(t.Name, names, t.Command, t.Env, t.Timeout)
	if OwnTool(t.Name) && t.Name != tools.Help {
		errs = append(errs, a.errorf("name", "%q is the name of a tool of mini's own: take another one", t.Name))
	}
	if len(t.Command) == 0 {
		errs = append(errs, a.errorf("command", "the command is missing: the program and its arguments, as [python3, issues.py]"))
	}
	if n := t.MaxOutput; n < 0 || n > env.MaxToolAnswer {
		errs = append(errs, a.errorf("max_output", "%d is not a number of bytes up to %d; 0 means tools.max_output", n, env.MaxToolAnswer))
	}
	return errs
}

func validateServer(a ability, s tools.MCPServer, names []string) []error {
	errs := a.common(s.Name, names, s.Command, s.Env, s.Timeout)
	if len(s.Command) > 0 == (s.URL != "") {
		errs = append(errs, a.errorf("command", "it takes either a command or a url"))
	}
	if s.URL == "" && s.TokenEnv != "" {
		errs = append(errs, a.errorf("token_env", "token_env goes with a url; a command gets its variables by env"))
	}
	if s.TokenEnv != "" && !isName(s.TokenEnv) { // maybe the token itself
		errs = append(errs, a.errorf("token_env", "it is the name of the environment variable that has the token; what stands there is no such name"))
	}
	if text := wrongURL(s.URL); text != "" {
		errs = append(errs, a.errorf("url", "%s", text))
	}
	return errs
}

// wrongURL says what is wrong with a server's URL, without repeating it.
func wrongURL(text string) string {
	if text == "" {
		return ""
	}
	const instead = ", which would stand in the files of a run: name a variable that has it with token_env"
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return "it is no URL that begins with http:// or https://"
	case at.User != nil:
		return "the url has a name or a password in it" + instead
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return "the query of the url cannot be read"
	}
	for name, values := range query {
		if LooksSecret(name) || slices.ContainsFunc(values, looksRandom) {
			return "the query of the url has what looks like a key in it" + instead
		}
	}
	return ""
}

// word are letters and digits without anything between them.
var word = lazyregexp.New(`[A-Za-z0-9_]{20,}`)

// looksRandom says that a value has a long word of letters and digits in it, as
// keys are and names are not.
func looksRandom(value string) bool {
	for _, w := range word.FindAllString(value, -1) {
		if strings.ContainsAny(w, "0123456789") && strings.ContainsAny(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") {
			return true
		}
	}
	return strings.HasPrefix(value, "sk-")
}

// validateAgents is about children of agents.
func (r *Resolved) validateAgents() []error {
	err := r.Agents.Validate()
	if e, ok := errors.AsType[*delegate.FieldError](err); ok {
		return []error{r.errorf("agents."+e.Field, "%v", e.Err)}
	}
	return nil
}
