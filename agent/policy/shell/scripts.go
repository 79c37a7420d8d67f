package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scriptMayRun reports whether the script in the arguments of sed, awk or jq may run
// a command or use a file.
func scriptMayRun(language string, g arguments) bool {
	return language != "" && slices.ContainsFunc(g.inlineScripts(), func(v value) bool {
		if language == "sed" {
			return v.kind != known || !safeSed().MatchString(v.text)
		}
		if language == "jq" {
			return jqImports().MatchString(v.text)
		}
		text := strings.ReplaceAll(v.text, "\\\n", " ")
		bare := awkLiterals().ReplaceAllString(text, `${1}${2}""`)
		if strings.Contains(strings.ReplaceAll(bare, `""`, ""), `"`) || strings.Contains(bare, "/") {
			bare = text // what is a literal is not certain
		}
		return v.kind != known || awkRuns().MatchString(bare) || strings.Contains(v.text, "/inet")
	})
}

// inlineScripts returns the scripts in the arguments of sed or awk: the values
// of options such as -e or, without them, the first operand.
func (g arguments) inlineScripts() []value {
	all := slices.Concat(g.values["e"], g.values["expression"], g.values["source"])
	if len(all) == 0 && len(g.operands) > 0 {
		all = g.operands[:1]
	}
	return all
}

// safeSed matches sed scripts that neither run commands nor name files.
var safeSed = sync.OnceValue(func() *regexp.Regexp {
	// D is the delimiter; a bracket expression that contains it is not matched
	const element, replacement = `[^]D\\\n[]|\\[^]\n]|\[:[a-z]+:\]|\[[^].:=[D\\\n]`, `(?:[^D\\\n]|\\(?s:.))*`
	const pattern = `(?:[^D\\\n[]|\\.|\[\^?(?:(?:` + element + `)+\[?|\[)\])*`
	in := func(d, text string) string { return strings.ReplaceAll(text, "D", d) }
	var changes []string
	for _, d := range strings.Split(`/ , # @ : % ! ~ _ = ; \| \+`, " ") {
		changes = append(changes, in(d, "D"+pattern+"D"+replacement+"D"))
	}
	change := `(?:` + strings.Join(changes, "|") + `)`
	address := `(?:\d+(?:~\d+)?|\$|` + in("/", "D"+pattern+"D") + `[IM]*)`
	command := strings.Join([]string{
		`[={}dDgGhHnNpPxz]`, `[lqQ]\s*\d*`, `[btT:][ \t]*[^\s;}]*[ \t]*(?:[;}\n]|$)`, `#[^\n]*`, `[aic](?:[^\\\n]|\\(?s:.))*`,
		`s` + change + `[gpiImM0-9]*`, `y` + change,
	}, "|")
	return regexp.MustCompile(`^(?:[\s;]*(?:` + address + `(?:\s*,\s*(?:[+~]\d+|` + address + `))?)?[\s!]*(?:` + command + `))*[\s;]*$`)
})

var (
	// awkLiterals matches strings and regular expressions of awk.
	awkLiterals = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|(^|[({},;!~&|=\n])(\s*)/(?:[^/\\\n[]|\\.|\[[^]\n]*\])+/`)
	})
	// jqImports matches jq code that reads a file.
	jqImports = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(import|include)\s*"`) })
	// awkRuns matches awk code that runs a command or uses a file.
	awkRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bsystem\s*\(|\bARG[CV]\b|(?:^|[^|])\|(?:$|[^|])|\|&|@|\bgetline\b|\bprintf?\b(?:[^;}\n/]|[,&|]\s*(?:#.*)?\n|/.*)*>`)
	})
)
