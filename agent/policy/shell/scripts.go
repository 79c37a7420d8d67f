package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scriptMayRun reports whether the program's script, in the given language, may
// run a command or use a file.
func (r *analyzer) scriptMayRun(language string, a parsedArguments, args []value, c *cmdContext) bool {
	switch language {
	case "sed":
		return slices.ContainsFunc(a.inlineScripts(), func(v value) bool {
			text := v.text
			if v.kind == unknown { // such as "s/$old/$new/", which is common
				text = shellExpansions().ReplaceAllString(strings.Trim(text, `"`), "1")
			}
			return !safeSed().MatchString(text)
		})
	case "awk":
		return slices.ContainsFunc(a.inlineScripts(), func(v value) bool {
			bare := awkLiterals().ReplaceAllString(v.text, `${1}${2}""`)
			return v.kind != unknown && (awkRuns().MatchString(bare) || strings.Contains(v.text, "/inet"))
		})
	case "sqlite":
		runs := func(v value) bool { return sqlRuns().MatchString(v.text) }
		return slices.ContainsFunc(args, runs) || c.stdin == stdinScript && sqlRuns().MatchString(c.input)
	case "make":
		return slices.ContainsFunc(a.operands, func(v value) bool { return strings.HasPrefix(v.text, "SHELL=") })
	}
	return false
}

// inlineScripts returns the scripts that sed or awk run: the values of options
// or the first operand.
func (a parsedArguments) inlineScripts() []value {
	var all []value
	named := false
	for name, values := range a.values {
		file := name == "f" || strings.HasPrefix("file", name)
		code := name == "e" || strings.HasPrefix("expression", name) || strings.HasPrefix("source", name)
		named = named || code || file
		if code {
			all = append(all, values...)
		}
	}
	if !named && len(a.operands) > 0 {
		all = append(all, a.operands[0])
	}
	return all
}

// shellExpansions matches substitutions and variables of the shell.
var shellExpansions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\([^()]*\)|\$\{[^{}]*\}|\$[A-Za-z0-9_@]+`)
})

// safeSed matches sed scripts that neither run commands nor name files.
var safeSed = sync.OnceValue(func() *regexp.Regexp {
	// D is the delimiter; a bracket expression that contains it is not matched
	const pattern, replacement = `(?:[^D\\\n[]|\\.|\[\^?(?:[^]^D\\\n]|\\[^]\n])(?:[^]D\\\n]|\\[^]\n])*\])*`, `(?:[^D\\\n]|\\(?s:.))*`
	in := func(d, text string) string { return strings.ReplaceAll(text, "D", d) }
	var changes []string
	for _, d := range strings.Split(`/ , # @ : % ! ~ _ = ; \| \+`, " ") {
		changes = append(changes, in(d, "D"+pattern+"D"+replacement+"D"))
	}
	change := `(?:` + strings.Join(changes, "|") + `)`
	address := `(?:\d+(?:~\d+)?|\$|` + in("/", "D"+pattern+"D") + `[IM]*)`
	command := strings.Join([]string{
		`[={}dDgGhHnNpPxz]`, `[lqQ]\s*\d*`, `[btT]\s*[^;}\n]*`, `:[^;\n]*`, `#[^\n]*`, `[aic](?:[^\\\n]|\\(?s:.))*`,
		`s` + change + `[gpiImM0-9]*`, `y` + change,
	}, "|")
	return regexp.MustCompile(`^(?:[\s;]*(?:` + address + `(?:\s*,\s*(?:[+~]\d+|` + address + `))?)?[\s!]*(?:` + command + `))*[\s;]*$`)
})

var (
	// awkLiterals matches strings and regular expressions of awk.
	awkLiterals = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|(^|[({,;!~&|\n])(\s*)/(?:[^/\\\n[]|\\.|\[[^]\n]*\])+/`)
	})
	awkRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bsystem\s*\(|(?:^|[^|])\|(?:$|[^|])|\|&|@|\bgetline\b|\bprintf?\b[^;}\n]*>`)
	})
	sqlRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|\n)\s*\.(shell|system|once|output|excel|import +['"]?\|)|\bedit\(|load_extension`)
	})
)
