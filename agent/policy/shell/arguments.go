package shell

import (
	"cmp"
	"slices"
	"strings"
)

// parsedArguments are the options and operands of a program.
type parsedArguments struct {
	flags    map[string]bool    // names of the given options, without dashes
	values   map[string][]value // values of the options that take a value
	operands []value
	// hasUnknown is set if an argument that is known only at run time may be an
	// option.
	hasUnknown bool
}

// hasFlag reports whether one of the named options is given. A long option may
// be given abbreviated.
func (a parsedArguments) hasFlag(names ...string) Tristate {
	if len(names) == 0 {
		return No
	}
	for _, name := range names {
		if a.flags[name] {
			return Yes
		}
		for given := range a.flags {
			if len(name) > 2 && len(given) >= 3 && strings.HasPrefix(name, given) {
				return Yes
			}
		}
	}
	if a.hasUnknown {
		return Maybe
	}
	return No
}

// argumentParser parses the arguments of one program and adds the paths among
// them to the program's part.
type argumentParser struct {
	*analyzer
	parsedArguments
	part *Part
	spec program
	dirs []string
}

func (r *analyzer) parseArguments(p *Part, spec program, args []value, s *scope) parsedArguments {
	a := argumentParser{
		analyzer: r, part: p, spec: spec, dirs: s.dirs,
		parsedArguments: parsedArguments{flags: map[string]bool{}, values: map[string][]value{}},
	}
	onlyOperands := false // after "--"
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.kind == unknown && strings.HasPrefix(v.text, "-") && !onlyOperands:
			// An option whose value is known only at run time, such as -j$(nproc).
			name, _, _ := strings.Cut(strings.TrimLeft(v.text, "-"), "=")
			a.flags[strings.TrimLeft(v.text, "-")] = true
			if mode, isFile := spec.files[name]; isFile {
				a.addPath(v, mode)
			}
		case onlyOperands || v.kind == unknown || !strings.HasPrefix(v.text, "-") || v.text == "-":
			a.hasUnknown = a.hasUnknown || v.kind == unknown && !onlyOperands && !strings.HasPrefix(strings.TrimPrefix(v.text, `"`), "/")
			a.operands = append(a.operands, v)
		case v.text == "--":
			onlyOperands = true
		case strings.HasPrefix(v.text, "--"):
			name, text, hasValue := strings.Cut(v.text[2:], "=")
			a.flags[name] = true
			if hasValue {
				a.addOption(name, value{text: text, kind: v.kind})
			} else if a.takesValue(name) && i+1 < len(args) {
				i++
				a.addOption(name, args[i])
			}
		default:
			i += a.parseShortOptions(v, args[i+1:])
		}
	}
	a.addOperandPaths()
	return a.parsedArguments
}

func (a *argumentParser) addPath(v value, mode Mode) {
	a.part.Paths = append(a.part.Paths, a.locatePath(v, mode, a.dirs))
}

func (a *argumentParser) takesValue(name string) bool {
	_, isFile := a.spec.files[name]
	return isFile || slices.Contains(a.spec.valueOptions, name)
}

// addOption records the value of an option, and its path if the value is or may
// be one.
func (a *argumentParser) addOption(name string, v value) {
	a.values[name] = append(a.values[name], v)
	if mode, isFile := a.spec.files[name]; isFile {
		a.addPath(v, mode)
	} else if !a.spec.noPaths && !slices.Contains(a.spec.valueOptions, name) && looksLikePath(v) {
		a.addPath(v, Uses)
	}
}

// parseShortOptions parses an argument with short options, such as -xzf. It
// returns the number of next arguments, 0 or 1, that are a value of these
// options.
func (a *argumentParser) parseShortOptions(v value, next []value) int {
	letters := v.text[1:]
	for at := range len(letters) {
		name, rest := letters[at:at+1], value{text: letters[at+1:], kind: v.kind}
		a.flags[name] = true
		switch {
		case strings.Contains(a.spec.attachedOptions, name):
			return 0
		case !a.takesValue(name) && !looksLikePath(rest): // an attached path is a value, as in -I/usr/include
			continue
		case rest.text != "":
			a.addOption(name, rest)
		case len(next) > 0:
			a.addOption(name, next[0])
			return 1
		}
		return 0
	}
	return 0
}

// addOperandPaths adds the operands that are or may be paths. A URL among the
// others makes Network at least Maybe.
func (a *argumentParser) addOperandPaths() {
	spec, rest := a.spec, a.operands
	if spec.noPaths {
		return
	}
	hasSkipOption := slices.ContainsFunc(spec.skipUnless, func(name string) bool { return a.flags[name] })
	if spec.skipFirst && !hasSkipOption && len(rest) > 0 {
		rest = rest[1:]
	}
	for i, v := range rest {
		mode := spec.operands
		if spec.lastWritten && len(rest) > 1 && i == len(rest)-1 {
			mode = Writes
		}
		switch {
		case mode != "":
			a.addPath(v, mode)
		case isURL(v.text):
			a.part.Network = a.part.Network.Or(Maybe)
		case v.kind == unknown || !strings.ContainsAny(v.text, "\n") && len(v.text) < 4096:
			a.addPath(v, Uses)
		}
		if _, text, ok := strings.Cut(v.text, "="); ok && text != "" { // such as PREFIX=/usr/local or if=FILE of dd
			a.addPath(value{text: text, kind: v.kind}, cmp.Or(mode, Uses))
		}
	}
}

func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && slices.Contains([]string{"http", "https", "ftp", "ssh", "git", "rsync", "s3", "gs", "ws", "wss"}, scheme)
}

// looksLikePath reports whether the value of an option is a path that may leave
// the working directory.
func looksLikePath(v value) bool {
	absolute := strings.HasPrefix(v.text, "/") || strings.HasPrefix(v.text, "~")
	return v.kind != unknown && (absolute || slices.Contains(strings.Split(v.text, "/"), ".."))
}

// hasSubcommand reports whether the first operand, or the first two joined by a
// space, are in names. The name "" stands for a call without options and
// operands.
func hasSubcommand(a parsedArguments, names []string) Tristate {
	if len(names) == 0 {
		return No
	}
	if len(a.operands) == 0 {
		if slices.Contains(names, "") && len(a.flags) == 0 {
			return Yes
		}
		return No
	}
	first := a.operands[0]
	switch {
	case !first.isLiteral():
		return Maybe
	case slices.Contains(names, first.text):
		return Yes
	case len(a.flags) > 0 && len(a.operands) > 1 && slices.Contains(names, a.operands[1].text):
		return Maybe // the first operand may be the value of an option
	case len(a.operands) > 1 && slices.Contains(names, first.text+" "+a.operands[1].text):
		return Yes
	}
	return No
}
