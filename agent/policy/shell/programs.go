package shell

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// program is a line of programs.txt, which describes the attributes.
type program struct {
	attributes map[string]string
	options    *regexp.Regexp // the options that are known; nil means all
}

func (p program) has(attribute string) bool { _, ok := p.attributes[attribute]; return ok }

// answer returns Yes if the program has the attribute, and one of the options in
// its value, if there are any.
func (p program) answer(attribute string, g arguments) Tristate {
	if p.has(attribute) && (p.attributes[attribute] == "" || g.hasFlag(p.list(attribute)...)) {
		return Yes
	}
	return No
}

// list returns the elements of an attribute's value.
func (p program) list(attribute string) []string {
	text := p.attributes[attribute]
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// operandMode returns how the program accesses its operands.
func (p program) operandMode() Mode {
	switch {
	case p.has("reads"):
		return Reads
	case p.has("writes"):
		return Writes
	}
	return Uses
}

// optionMode returns how the program accesses the value of an option; "" means
// that the value is not a file. takesValue reports whether the option has a
// value.
func (p program) optionMode(name string) (mode Mode, takesValue bool) {
	switch {
	case slices.Contains(p.list("in"), name):
		return Reads, true
	case slices.Contains(p.list("out"), name):
		return Writes, true
	}
	return "", slices.Contains(p.list("values"), name)
}

//go:embed programs.txt
var programsText string

// programs returns the lines of programs.txt, by program name or by program and
// subcommand, joined by a space.
var programs = sync.OnceValue(func() map[string]program {
	all := map[string]program{}
	for line := range strings.Lines(strings.ReplaceAll(programsText, "\\\n", "")) {
		at := strings.LastIndex(line, ": ")
		if at < 0 || line[0] == '#' {
			continue
		}
		names, attributes := line[:at], line[at+2:]
		p := program{attributes: map[string]string{}}
		for _, attribute := range strings.Fields(attributes) {
			key, text, _ := strings.Cut(attribute, "=")
			if p.attributes[key] = text; key == "options" {
				p.options = regexp.MustCompile("^(?:" + text + ")$")
			}
		}
		subcommands := ""
		if list, ok := strings.CutSuffix(names, "]"); ok {
			names, subcommands, _ = strings.Cut(list, "[")
		}
		for _, name := range strings.Fields(names) {
			if subcommands == "" {
				all[name] = p
			}
			for _, sub := range strings.Fields(subcommands) {
				all[name+" "+strings.ReplaceAll(sub, "+", " ")] = p
			}
		}
	}
	return all
})

// tableName returns the name in programs.txt for a program: python for
// python3.11, and mkfs for mkfs.ext4. For a program that is not in the file, it
// returns the base name without a version.
func tableName(name string) string {
	name = path.Base(name)
	if _, ok := programs()[name]; ok {
		return name
	}
	if strings.HasPrefix(name, "mkfs.") {
		return "mkfs"
	}
	return strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
}

// findSubcommand returns the line of the subcommand in args, with its name in
// the table, and the arguments without that name. A line of two words, such as
// "git stash drop", precedes one of a single word.
func findSubcommand(name string, args []value) (key string, spec program, rest []value, ok bool) {
	all := programs()
	if len(args) == 0 {
		return name, all[name+" -"], nil, true
	}
	if !args[0].isLiteral() {
		return name, program{}, args, false
	}
	key, rest = name+" "+args[0].text, args[1:]
	at := slices.IndexFunc(rest, func(v value) bool { return v.kind == unknown || !strings.HasPrefix(v.text, "-") })
	if at >= 0 {
		if spec, ok = all[key+" "+rest[at].text]; ok {
			return key + " " + rest[at].text, spec, slices.Delete(slices.Clone(rest), at, at+1), true
		}
		for other := range all { // a word that is not known may be the second one
			if !rest[at].isLiteral() && strings.HasPrefix(other, key+" ") {
				return key, program{}, rest, false
			}
		}
	}
	if spec, ok = all[key]; !ok {
		spec, ok = all[name+" *"]
	}
	return key, spec, rest, ok
}
