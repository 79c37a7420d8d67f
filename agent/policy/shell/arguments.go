package shell

import (
	"regexp"
	"slices"
	"strings"
)

// arguments are options and operands, taken apart.
type arguments struct {
	flags    map[string]bool
	operands []value
	// unknown says that some argument may be an option that nobody can name.
	unknown bool
}

// flag says whether one of some options is there. Long options may be
// shortened.
func (a arguments) flag(names ...string) Answer {
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

// arguments takes apart the arguments of a program, and notes the paths among
// them.
func (r *reader) arguments(p *Part, known program, args []value, s *scope) arguments {
	a := arguments{flags: map[string]bool{}}
	note := func(v value, mode Mode) {
		p.Paths = append(p.Paths, r.located(v, mode, s.dirs))
	}
	option := func(name string, v value, given bool) {
		mode, isFile := known.files[name]
		switch {
		case !given:
		case isFile:
			note(v, mode)
		case strings.Contains(known.values, name) && len(name) == 1, slices.Contains(known.words, name):
		case known.text:
		default:
			if looksLikePath(v) {
				note(v, Uses)
			}
		}
	}
	only := false // operands, after "--"
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.kind == unknown && strings.HasPrefix(v.text, "-") && !only:
			// An option with a value that is known only then, as -j$(nproc).
			a.flags[strings.TrimLeft(v.text, "-")] = true
			if name, _, ok := strings.Cut(strings.TrimLeft(v.text, "-"), "="); ok {
				if mode, isFile := known.files[name]; isFile {
					note(v, mode)
				}
			}
		case only || v.kind == unknown || !strings.HasPrefix(v.text, "-") || v.text == "-":
			a.unknown = a.unknown || v.kind == unknown && !only && !strings.HasPrefix(v.text, `"/`) && !strings.HasPrefix(v.text, "/")
			a.operands = append(a.operands, v)
		case v.text == "--":
			only = true
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			a.flags[name] = true
			_, isFile := known.files[name]
			if !has && (isFile || slices.Contains(known.words, name)) && i+1 < len(args) {
				i++
				option(name, args[i], true)
				continue
			}
			option(name, value{text: text, kind: v.kind}, has)
		default:
			i += r.cluster(v, args[i+1:], known, a.flags, option)
		}
	}
	r.operands(p, known, a, note)
	return a
}

// cluster takes apart short options; it returns how many of the next arguments
// belong to them.
func (r *reader) cluster(v value, next []value, known program, flags map[string]bool, option func(string, value, bool)) int {
	letters := v.text[1:]
	for at := range len(letters) {
		name := letters[at : at+1]
		flags[name] = true
		_, isFile := known.files[name]
		if !isFile && !strings.Contains(known.values, name) {
			if rest := letters[at+1:]; looksLikePath(value{text: rest, kind: v.kind}) {
				option(name, value{text: rest, kind: v.kind}, true) // as -I/usr/include
				return 0
			}
			continue
		}
		if rest := letters[at+1:]; rest != "" {
			option(name, value{text: rest, kind: v.kind}, true)
		} else if len(next) > 0 {
			option(name, next[0], true)
			return 1
		}
		return 0
	}
	return 0
}

// operands notes those that are paths.
func (r *reader) operands(p *Part, known program, a arguments, note func(value, Mode)) {
	if known.text {
		return
	}
	skip := known.skip
	for _, name := range strings.Fields(known.instead) {
		if a.flags[name] {
			skip = 0
		}
	}
	mode := known.operands
	if mode == "" {
		mode = Uses
	}
	rest := a.operands[min(skip, len(a.operands)):]
	for i, v := range rest {
		m := mode
		if known.last != "" && len(rest) > 1 && i == len(rest)-1 {
			m = known.last
		}
		switch {
		case mode != Uses:
			note(v, m)
		case url.MatchString(v.text):
			p.Network = p.Network.Or(Maybe)
		case v.kind == unknown || !strings.ContainsAny(v.text, "\n") && len(v.text) < 4096:
			if _, text, ok := strings.Cut(v.text, "="); ok && looksLikePath(value{text: text, kind: v.kind}) {
				note(value{text: text, kind: v.kind}, m) // as PREFIX=/usr/local
			} else {
				note(v, m)
			}
		}
	}
}

var url = regexp.MustCompile(`^(https?|ftp|ssh|git|rsync|s3|gs|wss?)://`)

// looksLikePath says of the value of an option that it leads somewhere.
func looksLikePath(v value) bool {
	return v.kind != unknown && (strings.HasPrefix(v.text, "/") || strings.HasPrefix(v.text, "~") || slices.Contains(strings.Split(v.text, "/"), ".."))
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
