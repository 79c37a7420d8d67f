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
)

// rule is a Rule that is ready to be held against parts.
type rule struct {
	Rule
	do        agent.Verb
	label     string // how records name it
	by        string
	pattern   *regexp.Regexp
	anchored  bool // the pattern is matched from the beginning
	arguments []*regexp.Regexp
	paths     []sided
	reads     []sided
	writes    []sided
	steps     comparison
	cost      comparison
}

// sided is one value of Paths, Reads or Writes.
type sided struct {
	word string // "outside" or "inside", else
	glob *regexp.Regexp
	base bool // the pattern is one of names, at any depth
}

// Check finds the mistakes of a configuration; classes are the environments
// there are.
func Check(c Config, classes []string) []Wrong {
	var wrong []Wrong
	bad := func(key, format string, args ...any) {
		wrong = append(wrong, Wrong{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	word := func(key, given string, known ...string) {
		if !slices.Contains(known, given) {
			wrong = append(wrong, Wrong{Key: key, Text: fmt.Sprintf("%.60q is not one of %s", given, strings.Join(known, ", ")), Given: given, Known: known})
		}
	}
	if c.Default != "" {
		word("default", c.Default, verbs...)
	}
	if c.Unattended != "" {
		word("unattended", c.Unattended, string(agent.Deny), string(agent.Allow))
	}
	for _, list := range []struct {
		key   string
		rules []Rule
	}{{"rules", c.Rules}, {"default_rules", c.DefaultRules}} {
		if len(list.rules) > maxRules {
			bad(list.key, "%d rules are more than %d", len(list.rules), maxRules)
			continue
		}
		for i, r := range list.rules {
			key := fmt.Sprintf("%s[%d]", list.key, i)
			if r.Do == "" {
				bad(key, "what is it to do? Add do: allow, ask or deny")
			} else {
				word(key+".do", r.Do, verbs...)
			}
			for _, class := range r.Environments {
				word(key+".environments", class, classes...)
			}
			_, errs := compile(r, "", "")
			for _, w := range errs {
				bad(key+"."+w.Key, "%s", w.Text)
			}
		}
	}
	for i, text := range c.Whitelist {
		if _, err := prefix(text); err != nil {
			bad("whitelist_actions", "number %d: %s", i, err)
		}
	}
	for _, dir := range c.Inside {
		if !path.IsAbs(dir) && dir != "~" && !strings.HasPrefix(dir, "~/") {
			bad("inside", "%.60q is no absolute path; write /tmp or ~/.cache", dir)
		}
	}
	return append(wrong, c.Decider.check(word)...)
}

func (d Decider) check(word func(string, string, ...string)) []Wrong {
	var wrong []Wrong
	bad := func(key, text string) { wrong = append(wrong, Wrong{Key: "decider." + key, Text: text}) }
	for _, when := range d.When {
		word("decider.when", when, verbs...)
	}
	if d.OnFailure != "" {
		word("decider.on_failure", d.OnFailure, string(agent.Deny), string(agent.Ask))
	}
	switch u, err := url.Parse(d.URL); {
	case len(d.Command) > 0 && d.URL != "":
		bad("url", "there is a command, too; a decider is one of them")
	case d.URL == "":
	case err != nil || u.User != nil || u.RawQuery != "":
		bad("url", "not a plain URL; user names, passwords and queries have no place in it, since the configuration is written to files (see token_env)")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		bad("url", "it begins with neither http:// nor https://, or names no server")
	}
	switch {
	case len(d.Command) > 0 && d.Command[0] == "":
		bad("command", "the name of the program is empty")
	case d.URL == "" && (d.TokenEnv != "" || d.TokenHeader != ""):
		bad("token_env", "it is for a url; a command has its own ways to keys")
	case d.TokenHeader != "" && d.TokenEnv == "":
		bad("token_header", "which value goes into it? Name its variable in token_env")
	case strings.ContainsAny(d.TokenEnv, "= \x00"):
		bad("token_env", "it is the name of a variable, and never the token itself")
	case strings.Trim(d.TokenHeader, headerLetters) != "":
		bad("token_header", "it is no name of a header")
	}
	if !(d.Timeout >= 0) || d.Timeout > maxTimeout {
		bad("timeout", fmt.Sprintf("%v is not a number of seconds up to %d", d.Timeout, maxTimeout))
	}
	return wrong
}

// headerLetters are the characters of a header's name.
const headerLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

// maxTimeout bounds an answer of a decider, in seconds: people may be behind it.
const maxTimeout = 24 * 3600

// compile makes a rule ready.
func compile(r Rule, label, by string) (rule, []Wrong) {
	var wrong []Wrong
	out := rule{Rule: r, do: agent.Verb(r.Do), label: label, by: by}
	regex := func(key, text string) *regexp.Regexp {
		re, err := expression(text)
		if err != nil {
			wrong = append(wrong, Wrong{Key: key, Text: err.Error()})
		}
		return re
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
			wrong = append(wrong, Wrong{Key: key, Text: fmt.Sprintf("%.60q is no name of a program, without its folder, and no pattern of names", name)})
		}
	}
	for _, f := range []struct {
		key   string
		words Words
		to    *[]sided
	}{{"paths", r.Paths, &out.paths}, {"reads", r.Reads, &out.reads}, {"writes", r.Writes, &out.writes}} {
		for _, word := range f.words {
			s, err := side(word)
			if err != nil {
				wrong = append(wrong, Wrong{Key: f.key, Text: err.Error()})
			}
			*f.to = append(*f.to, s)
		}
	}
	for _, f := range []struct {
		key, text string
		to        *comparison
	}{{"steps", r.Steps, &out.steps}, {"cost", r.Cost, &out.cost}} {
		var err error
		if *f.to, err = compare(f.text); err != nil {
			wrong = append(wrong, Wrong{Key: f.key, Text: err.Error()})
		}
	}
	return out, wrong
}

// prefix is a regular expression that is matched from the beginning.
func prefix(text string) (*regexp.Regexp, error) {
	if _, err := expression(text); err != nil {
		return nil, err
	}
	return expression("^(?:" + text + ")")
}

// expression is a regular expression of the user's.
func expression(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the expression is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(strings.ReplaceAll(text, `\Z`, `\z`))
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		hint := ""
		if e.Code == syntax.ErrInvalidPerlOp || e.Code == syntax.ErrInvalidEscape {
			hint = "; lookarounds and backreferences are not to be had"
		}
		return nil, fmt.Errorf("%s: %.60q%s", e.Code, e.Expr, hint)
	}
	return re, err
}

// side reads a value of Paths, Reads or Writes.
func side(word string) (sided, error) {
	switch {
	case word == "outside" || word == "inside":
		return sided{word: word}, nil
	case word == "" || len(word) > 1000 || strings.ContainsAny(word, "\n\x00"):
		return sided{}, fmt.Errorf("%.60q is neither outside nor inside nor a pattern of paths", word)
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		switch rest := word[i:]; {
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
	return sided{glob: re, base: !strings.Contains(strings.TrimSuffix(word, "/"), "/")}, err
}

// comparison is ">50"; the zero one always holds.
type comparison struct {
	op string
	n  float64
}

func compare(text string) (comparison, error) {
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
	return comparison{}, fmt.Errorf(`%.60q compares with nothing; write ">50" (or >=, <, <=)`, text)
}

func (c comparison) holds(x float64) bool {
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
