package shell

import (
	"cmp"
	"slices"
	"strings"
)

// parsedArguments are the options and operands of a program.
type parsedArguments struct {
	flags    map[string]bool
	values   map[string][]value // values of options that take one
	operands []value
	// hasUnknown is set if some argument may be an option, but which one is
	// known only at run time.
	hasUnknown bool
}

// hasFlag reports whether one of the named options is given. Long options may
// be abbreviated.
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
// them to its part.
type argumentParser struct {
	*analyzer
	parsedArguments
	part  *Part
	known program
	dirs  []string
}

func (r *analyzer) parseArguments(p *Part, known program, args []value, s *scope) parsedArguments {
	a := argumentParser{
		analyzer: r, part: p, known: known, dirs: s.dirs,
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
			if mode, isFile := known.files[name]; isFile {
				a.addPath(v, mode)
			}
		case onlyOperands || v.kind == unknown || !strings.HasPrefix(v.text, "-") || v.text == "-":
			a.hasUnknown = a.hasUnknown || v.kind == unknown && !onlyOperands && !strings.HasPrefix(strings.TrimPrefix(v.text, `"`), "/")
			a.operands = append(a.operands, v)
		case v.text == "--":
			onlyOperands = true
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			a.flags[name] = true
			if has {
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
	_, isFile := a.known.files[name]
	return isFile || slices.Contains(a.known.values, name)
}

// addOption records the value of an option.
func (a *argumentParser) addOption(name string, v value) {
	a.values[name] = append(a.values[name], v)
	if mode, isFile := a.known.files[name]; isFile {
		a.addPath(v, mode)
	} else if !a.known.noPaths && !slices.Contains(a.known.values, name) && looksLikePath(v) {
		a.addPath(v, Uses)
	}
}

// parseShortOptions parses a cluster of short options. It returns how many of
// the next arguments are values of them.
func (a *argumentParser) parseShortOptions(v value, next []value) int {
	letters := v.text[1:]
	for at := range len(letters) {
		name, rest := letters[at:at+1], value{text: letters[at+1:], kind: v.kind}
		a.flags[name] = true
		switch {
		case strings.Contains(a.known.attached, name):
			return 0
		case !a.takesValue(name) && !looksLikePath(rest): // a path, as in -I/usr/include
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

// addOperandPaths adds the operands that are paths.
func (a *argumentParser) addOperandPaths() {
	known, rest := a.known, a.operands
	if known.noPaths {
		return
	}
	given := slices.ContainsFunc(known.skipUnless, func(name string) bool { return a.flags[name] })
	if known.skip && !given && len(rest) > 0 {
		rest = rest[1:]
	}
	for i, v := range rest {
		mode := known.operands
		if known.lastWritten && len(rest) > 1 && i == len(rest)-1 {
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

// hasSubcommand reports whether the first operands are one of names.
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
