package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scriptMayRun reports whether the script that a program is given, in the given
// language, may run a command or use a file.
func (r *analyzer) scriptMayRun(language string, a parsedArguments, args []value, c *cmdContext) bool {
	switch language {
	case "sed":
		return slices.ContainsFunc(a.inlineScripts(), func(v value) bool {
			text := v.text
			if v.kind == unknown { // "s/$old/$new/" is common: assume harmless values
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

// inlineScripts returns the scripts in the arguments of sed or awk: the values
// of options such as -e, or the first operand if there is neither such an option
// nor a script file (-f).
func (a parsedArguments) inlineScripts() []value {
	var all []value
	hasScriptOption := false
	for name, values := range a.values {
		isFile := name == "f" || strings.HasPrefix("file", name)
		isCode := name == "e" || strings.HasPrefix("expression", name) || strings.HasPrefix("source", name)
		hasScriptOption = hasScriptOption || isCode || isFile
		if isCode {
			all = append(all, values...)
		}
	}
	if !hasScriptOption && len(a.operands) > 0 {
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
	// awkRuns matches awk code that runs a command or uses a file.
	awkRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bsystem\s*\(|(?:^|[^|])\|(?:$|[^|])|\|&|@|\bgetline\b|\bprintf?\b[^;}\n]*>`)
	})
	// sqlRuns matches SQL scripts that run a command or load or write a file.
	sqlRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|\n)\s*\.(shell|system|once|output|excel|import +['"]?\|)|\bedit\(|load_extension`)
	})
)
