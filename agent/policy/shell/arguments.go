package shell

import (
	"cmp"
	"slices"
	"strings"
)

// arguments are options and operands, taken apart.
type arguments struct {
	flags    map[string]bool
	values   map[string][]value // of options that take one
	operands []value
	// unknown says that some argument may be an option that nobody can name.
	unknown bool
}

// flag says whether one of some options is there. Long options may be
// shortened.
func (a arguments) flag(names ...string) Answer {
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
	if a.unknown {
		return Maybe
	}
	return No
}

// argumentReader takes apart the arguments of one program, and notes the paths
// among them.
type argumentReader struct {
	*reader
	arguments
	part  *Part
	known program
	dirs  []string
}

func (r *reader) arguments(p *Part, known program, args []value, s *scope) arguments {
	a := argumentReader{
		reader: r, part: p, known: known, dirs: s.dirs,
		arguments: arguments{flags: map[string]bool{}, values: map[string][]value{}},
	}
	only := false // operands, after "--"
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.kind == unknown && strings.HasPrefix(v.text, "-") && !only:
			// An option with a value that is known only then, as -j$(nproc).
			name, _, _ := strings.Cut(strings.TrimLeft(v.text, "-"), "=")
			a.flags[strings.TrimLeft(v.text, "-")] = true
			if mode, isFile := known.files[name]; isFile {
				a.note(v, mode)
			}
		case only || v.kind == unknown || !strings.HasPrefix(v.text, "-") || v.text == "-":
			a.unknown = a.unknown || v.kind == unknown && !only && !strings.HasPrefix(strings.TrimPrefix(v.text, `"`), "/")
			a.operands = append(a.operands, v)
		case v.text == "--":
			only = true
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			a.flags[name] = true
			if has {
				a.option(name, value{text: text, kind: v.kind})
			} else if a.takesValue(name) && i+1 < len(args) {
				i++
				a.option(name, args[i])
			}
		default:
			i += a.cluster(v, args[i+1:])
		}
	}
	a.paths()
	return a.arguments
}

func (a *argumentReader) note(v value, mode Mode) {
	a.part.Paths = append(a.part.Paths, a.located(v, mode, a.dirs))
}

func (a *argumentReader) takesValue(name string) bool {
	_, isFile := a.known.files[name]
	return isFile || slices.Contains(a.known.values, name)
}

// option notes the value of an option.
func (a *argumentReader) option(name string, v value) {
	a.values[name] = append(a.values[name], v)
	if mode, isFile := a.known.files[name]; isFile {
		a.note(v, mode)
	} else if !a.known.text && !slices.Contains(a.known.values, name) && looksLikePath(v) {
		a.note(v, Uses)
	}
}

// cluster takes apart short options; it returns how many of the next arguments
// belong to them.
func (a *argumentReader) cluster(v value, next []value) int {
	letters := v.text[1:]
	for at := range len(letters) {
		name, rest := letters[at:at+1], value{text: letters[at+1:], kind: v.kind}
		a.flags[name] = true
		switch {
		case strings.Contains(a.known.attached, name):
			return 0
		case !a.takesValue(name) && !looksLikePath(rest): // a path as in -I/usr/include
			continue
		case rest.text != "":
			a.option(name, rest)
		case len(next) > 0:
			a.option(name, next[0])
			return 1
		}
		return 0
	}
	return 0
}

// paths notes the operands that are paths.
func (a *argumentReader) paths() {
	known, rest := a.known, a.operands
	if known.text {
		return
	}
	given := slices.ContainsFunc(known.instead, func(name string) bool { return a.flags[name] })
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
			a.note(v, mode)
		case isURL(v.text):
			a.part.Network = a.part.Network.Or(Maybe)
		case v.kind == unknown || !strings.ContainsAny(v.text, "\n") && len(v.text) < 4096:
			a.note(v, Uses)
		}
		if _, text, ok := strings.Cut(v.text, "="); ok && text != "" { // as PREFIX=/usr/local, and of dd's if=
			a.note(value{text: text, kind: v.kind}, cmp.Or(mode, Uses))
		}
	}
}

func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && slices.Contains([]string{"http", "https", "ftp", "ssh", "git", "rsync", "s3", "gs", "ws", "wss"}, scheme)
}

// looksLikePath says of the value of an option that it leads somewhere.
func looksLikePath(v value) bool {
	elsewhere := strings.HasPrefix(v.text, "/") || strings.HasPrefix(v.text, "~")
	return v.kind != unknown && (elsewhere || slices.Contains(strings.Split(v.text, "/"), ".."))
}

// subcommand looks for the first operands among some names.
func subcommand(a arguments, names []string) Answer {
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
	case !first.literal():
		return Maybe
	case slices.Contains(names, first.text):
		return Yes
	case len(a.flags) > 0 && len(a.operands) > 1 && slices.Contains(names, a.operands[1].text):
		return Maybe // the first may be the value of an option
	case len(a.operands) > 1 && slices.Contains(names, first.text+" "+a.operands[1].text):
		return Yes
	}
	return No
}
