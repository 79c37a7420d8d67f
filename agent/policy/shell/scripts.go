package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scripted says that what a program is told to do, in a language of its own, may
// run a command or use a file.
func (r *reader) scripted(language string, a arguments, args []value, c *context) bool {
	switch language {
	case "sed":
		return slices.ContainsFunc(a.scripts(), func(v value) bool {
			text := v.text
			if v.kind == unknown { // as "s/$old/$new/", which is ordinary
				text = insertions().ReplaceAllString(strings.Trim(text, `"`), "1")
			}
			return !plainSed().MatchString(text)
		})
	case "awk":
		return slices.ContainsFunc(a.scripts(), func(v value) bool {
			bare := awkQuiet().ReplaceAllString(v.text, `${1}${2}""`)
			return v.kind != unknown && (awkRuns().MatchString(bare) || strings.Contains(v.text, "/inet"))
		})
	case "sqlite":
		runs := func(v value) bool { return sqlRuns().MatchString(v.text) }
		return slices.ContainsFunc(args, runs) || c.stdin == script && sqlRuns().MatchString(c.input)
	case "make":
		return slices.ContainsFunc(a.operands, func(v value) bool { return strings.HasPrefix(v.text, "SHELL=") })
	}
	return false
}

// scripts are the texts that sed or awk run: the values of options, or the first
// operand.
func (a arguments) scripts() []value {
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

// insertions are what a shell puts into a text.
var insertions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\([^()]*\)|\$\{[^{}]*\}|\$[A-Za-z0-9_@]+`)
})

// plainSed matches the scripts of sed that neither run anything nor name a file:
// all others are asked about.
var plainSed = sync.OnceValue(func() *regexp.Regexp {
	// of a pattern and a replacement; a bracket with the delimiter in it is not plain
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
	// awkQuiet are strings and patterns of awk, in which nothing is run.
	awkQuiet = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|(^|[({,;!~&|\n])(\s*)/(?:[^/\\\n[]|\\.|\[[^]\n]*\])+/`)
	})
	awkRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bsystem\s*\(|(?:^|[^|])\|(?:$|[^|])|\|&|@|\bgetline\b|\bprintf?\b[^;}\n]*>`)
	})
	sqlRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(^|\n)\s*\.(shell|system|once|output|excel|import +['"]?\|)|\bedit\(|load_extension`)
	})
)
