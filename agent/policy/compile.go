package policy

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy/shell"
)

// rule is a compiled Rule.
type rule struct {
	Rule
	action    agent.DecisionAction
	label     string   // value of Decision.Rule
	by        string   // value of Decision.By
	command   []string // the words of Rule.Command
	pattern   *regexp.Regexp
	anchored  bool // the pattern matches only at the start
	arguments []*regexp.Regexp
	paths     []pathPattern
	reads     []pathPattern
	writes    []pathPattern
	steps     comparison
	cost      comparison
}

// pathPattern is one value of Rule.Paths, Rule.Reads or Rule.Writes.
type pathPattern struct {
	keyword    string         // "outside", "inside" or empty
	glob       *regexp.Regexp // if keyword is empty
	anyElement bool           // glob is matched with each element of the path, not the whole path
}

// Check returns the mistakes in a configuration. classes are the names that
// Rule.Environments may have.
func Check(c Config, classes []string) []ConfigError {
	var problems []ConfigError
	report := func(key, format string, args ...any) {
		problems = append(problems, ConfigError{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	oneOf := func(key, given string, known ...string) {
		if !slices.Contains(known, given) {
			problems = append(problems, ConfigError{
				Key: key, Text: fmt.Sprintf("%.60q is not one of %s", given, strings.Join(known, ", ")), Value: given, Allowed: known,
			})
		}
	}
	if c.Default != "" {
		oneOf("default", c.Default, actions...)
	}
	if c.Unattended != "" {
		oneOf("unattended", c.Unattended, string(agent.Deny), string(agent.Allow))
	}
	for _, list := range []struct {
		key   string
		rules []Rule
	}{{"rules", c.Rules}, {"default_rules", c.DefaultRules}} {
		if len(list.rules) > maxRules {
			report(list.key, "%d rules exceed the maximum of %d", len(list.rules), maxRules)
			continue
		}
		for i, r := range list.rules {
			key := fmt.Sprintf("%s[%d]", list.key, i)
			if r.Action == "" {
				report(key, "do is missing: add do: allow, ask or deny")
			} else {
				oneOf(key+".do", r.Action, actions...)
			}
			for _, class := range r.Environments {
				oneOf(key+".environments", class, classes...)
			}
			_, errs := compile(r, "", "")
			for _, e := range errs {
				report(key+"."+e.Key, "%s", e.Text)
			}
		}
	}
	for i, text := range c.Whitelist {
		if _, err := compilePrefix(text); err != nil {
			report("whitelist_actions", "entry %d: %s", i, err)
		}
	}
	for _, dir := range c.ExtraDirs {
		if !path.IsAbs(dir) && dir != "~" && !strings.HasPrefix(dir, "~/") {
			report("inside", "%.60q is not an absolute path; write a path like /tmp or ~/.cache", dir)
		}
	}
	return append(problems, c.Decider.check(oneOf)...)
}

func (d DeciderConfig) check(oneOf func(string, string, ...string)) []ConfigError {
	var problems []ConfigError
	report := func(key, text string) { problems = append(problems, ConfigError{Key: "decider." + key, Text: text}) }
	for _, when := range d.When {
		oneOf("decider.when", when, actions...)
	}
	if d.OnFailure != "" {
		oneOf("decider.on_failure", d.OnFailure, string(agent.Deny), string(agent.Ask))
	}
	switch u, err := url.Parse(d.URL); {
	case len(d.Command) > 0 && d.URL != "":
		report("url", "command is set, too; set only one of them")
	case d.URL == "":
	case err != nil || u.User != nil || u.RawQuery != "":
		report("url", "the URL must not contain a user name, password or query, because the configuration is written to files; use token_env")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		report("url", "the URL must begin with http:// or https:// and name a host")
	}
	switch {
	case len(d.Command) > 0 && d.Command[0] == "":
		report("command", "the program name is empty")
	case d.URL == "" && (d.TokenEnv != "" || d.TokenHeader != ""):
		report("token_env", "a token is sent to a url only; a command must read its keys itself")
	case d.TokenHeader != "" && d.TokenEnv == "":
		report("token_header", "token_env is missing: name the variable that holds the header's value")
	case strings.ContainsAny(d.TokenEnv, "= \x00"):
		report("token_env", "the value must be the name of an environment variable, not the token")
	case strings.Trim(d.TokenHeader, headerNameChars) != "":
		report("token_header", "the value is not a valid header name")
	}
	if !(d.Timeout >= 0) || d.Timeout > maxTimeout {
		report("timeout", fmt.Sprintf("%v is not a number of seconds up to %d", d.Timeout, maxTimeout))
	}
	return problems
}

// headerNameChars are the characters allowed in a header name.
const headerNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

// maxTimeout bounds DeciderConfig.Timeout, in seconds. It is long because the
// decider may ask a person.
const maxTimeout = 24 * 3600

// compile compiles a rule and returns the mistakes in it. label and by go into
// the rule's decisions.
func compile(r Rule, label, by string) (rule, []ConfigError) {
	var problems []ConfigError
	out := rule{Rule: r, action: agent.DecisionAction(r.Action), label: label, by: by}
	regex := func(key, text string) *regexp.Regexp {
		re, err := compileRegexp(text)
		if err != nil {
			problems = append(problems, ConfigError{Key: key, Text: err.Error()})
		}
		return re
	}
	if r.Command != "" {
		var ok bool
		switch out.command, ok = shell.SimpleCommand(r.Command); {
		case !ok:
			problems = append(problems, ConfigError{Key: "command", Text: fmt.Sprintf("%.60q is not one program with its arguments, without variables, patterns, pipes and redirections", r.Command)})
		case r.Action != "" && out.action != agent.Allow:
			problems = append(problems, ConfigError{Key: "command", Text: "the key is for rules that allow; use programs and arguments"})
		}
	}
	if r.Pattern != "" {
		out.pattern = regex("pattern", r.Pattern)
	}
	for _, text := range r.Arguments {
		out.arguments = append(out.arguments, regex("arguments", text))
	}
	for _, name := range slices.Concat(r.Programs, r.PipesInto) {
		if _, err := path.Match(name, ""); err != nil || name == "" || strings.Contains(name, "/") {
			key := "programs"
			if slices.Contains(r.PipesInto, name) {
				key = "pipes_into"
			}
			problems = append(problems, ConfigError{Key: key, Text: fmt.Sprintf("%.60q is neither a program name (without a directory) nor a pattern of names", name)})
		}
	}
	for _, f := range []struct {
		key    string
		values StringList
		dest   *[]pathPattern
	}{{"paths", r.Paths, &out.paths}, {"reads", r.Reads, &out.reads}, {"writes", r.Writes, &out.writes}} {
		for _, text := range f.values {
			pattern, err := compilePathPattern(text)
			if err != nil {
				problems = append(problems, ConfigError{Key: f.key, Text: err.Error()})
			}
			*f.dest = append(*f.dest, pattern)
		}
	}
	for _, f := range []struct {
		key, text string
		dest      *comparison
	}{{"steps", r.Steps, &out.steps}, {"cost", r.Cost, &out.cost}} {
		var err error
		if *f.dest, err = parseComparison(f.text); err != nil {
			problems = append(problems, ConfigError{Key: f.key, Text: err.Error()})
		}
	}
	return out, problems
}

// compilePrefix compiles a regular expression that matches at the start only.
func compilePrefix(text string) (*regexp.Regexp, error) {
	if _, err := compileRegexp(text); err != nil {
		return nil, err
	}
	return compileRegexp("^(?:" + text + ")")
}

// compileRegexp compiles a user's regular expression. It also accepts Python's
// \Z, which is \z in Go.
func compileRegexp(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(strings.ReplaceAll(text, `\Z`, `\z`))
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		hint := ""
		if e.Code == syntax.ErrInvalidPerlOp || e.Code == syntax.ErrInvalidEscape {
			hint = "; lookarounds and backreferences are not supported"
		}
		return nil, fmt.Errorf("%s: %.60q%s", e.Code, e.Expr, hint)
	}
	return re, err
}

// compilePathPattern compiles one value of Paths, Reads or Writes.
func compilePathPattern(text string) (pathPattern, error) {
	switch {
	case text == "outside" || text == "inside":
		return pathPattern{keyword: text}, nil
	case text == "" || len(text) > 1000 || strings.ContainsAny(text, "\n\x00"):
		return pathPattern{}, fmt.Errorf("%.60q is not outside, inside or a path pattern", text)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	re, err := regexp.Compile("(?s)^" + strings.TrimSuffix(b.String(), "/") + "(?:/.*)?$")
	return pathPattern{glob: re, anyElement: !strings.Contains(strings.TrimSuffix(text, "/"), "/")}, err
}

// comparison is a condition such as ">50". The zero value is always true.
type comparison struct {
	op string
	n  float64
}

func parseComparison(text string) (comparison, error) {
	if text == "" {
		return comparison{}, nil
	}
	for _, op := range []string{">=", "<=", ">", "<"} {
		if rest, ok := strings.CutPrefix(text, op); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err == nil && n >= 0 && n < 1e12 {
				return comparison{op, n}, nil
			}
		}
	}
	return comparison{}, fmt.Errorf(`%.60q is not a comparison; write ">50" (or >=, <, <=)`, text)
}

func (c comparison) isTrue(x float64) bool {
	switch c.op {
	case ">":
		return x > c.n
	case ">=":
		return x >= c.n
	case "<":
		return x < c.n
	case "<=":
		return x <= c.n
	}
	return true
}
