package shell

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// arguments are the options and operands of a program.
type arguments struct {
	flags    map[string]bool    // names of the given options, without dashes
	values   map[string][]value // values of the options that take a value
	operands []value
	dashes   int // number of operands before "--"; -1 if there is no "--"
}

// hasFlag reports whether one of the named options is given.
func (g arguments) hasFlag(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return g.flags[name] })
}

// hasOnly reports whether all given options are among these letters.
func (g arguments) hasOnly(letters string) bool {
	for flag := range g.flags {
		if !strings.Contains(letters, flag) {
			return false
		}
	}
	return true
}

// parseArguments parses the options and operands of a program, and adds the
// paths in options to its part. An option that is not known makes the part
// undecided. If stop is set, options end at the first operand.
func (a *analyzer) parseArguments(p *Part, spec program, args []value, s *scope, stop bool) arguments {
	g := arguments{flags: map[string]bool{}, values: map[string][]value{}, dashes: -1}
	if spec.has("cluster") && len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
		args = slices.Clone(args)
		args[0].text = "-" + args[0].text
	}
	for i := 0; i < len(args); i++ {
		if spec.has("ends") && (len(g.operands) > 0 || g.hasFlag(spec.list("ends")...)) {
			spec = program{}
		}
		v := args[i]
		isOption := g.dashes < 0 && strings.HasPrefix(v.text, "-") && v.text != "-"
		switch {
		case isOption && v.text == "--":
			g.dashes = len(g.operands)
		case isOption:
			i += a.parseOption(p, spec, v, args[i+1:], s, &g)
		case stop:
			g.operands = args[i:]
			return g
		default:
			if v.kind == unknown && g.dashes < 0 && spec.options != nil {
				p.UndecidedReason = "the options of " + p.Program + " are known only when it runs"
			}
			g.operands = append(g.operands, v)
		}
	}
	return g
}

// parseOption parses an argument that begins with a dash. It returns the number
// of next arguments, 0 or 1, that are its value.
func (a *analyzer) parseOption(p *Part, spec program, v value, next []value, s *scope, g *arguments) int {
	add := func(name string, v value) {
		mode, isText := spec.optionMode(name)
		g.values[name] = append(g.values[name], v)
		if mode == "" && !isText && !spec.has("text") {
			if within := pathWithin(v.text, "=:,"); v.kind == unknown || within != "" {
				v.text, mode = cmp.Or(within, v.text), Uses
			}
		}
		if mode != "" {
			p.Paths = append(p.Paths, a.locatePath(v, mode, s.dirs))
		}
	}
	text := v.text
	if v.kind == unknown { // such as -j$(nproc) or --out="$X"
		text = text[:strings.IndexAny(text+"$", "$`\"'{")]
	}
	name, attached, hasValue := strings.Cut(text, "=")
	if spec.options != nil && !spec.options.MatchString(name) {
		p.UndecidedReason = "mini does not know the option " + shortened(displayText(name)) + " of " + p.Program
	}
	if name = strings.TrimLeft(name, "-"); v.kind != unknown {
		v.text = attached
	}
	if strings.HasPrefix(text, "--") || spec.has("words") {
		g.flags[name] = true
		_, takesValue := spec.optionMode(name)
		switch {
		case hasValue, v.kind == unknown:
			add(name, v)
			return 0
		case takesValue && len(next) > 0:
			add(name, next[0])
			return 1
		case !spec.has("words"):
			return 0
		}
	}
	for at := 1; at < len(text); at++ { // letters, and perhaps a value: -xzfFILE
		name, rest := text[at:at+1], value{text: text[at+1:], kind: v.kind}
		if v.kind == unknown {
			rest.text = v.text
		}
		_, takesValue := spec.optionMode(name)
		g.flags[name] = g.flags[name] || !spec.has("words")
		switch {
		case slices.Contains(spec.list("in-place"), name): // the rest is a suffix, or a pattern for the copy
			add(name, rest)
			return 0
		case takesValue && rest.text == "" && len(next) > 0:
			add(name, next[0])
			return 1
		case takesValue, leavesDir(rest.text): // an attached value, as in -I/usr/include
			add(name, rest)
			return 0
		case spec.has("words"):
			return 0
		}
	}
	if v.kind == unknown {
		add("", v)
		if spec.options != nil {
			p.UndecidedReason = "the options of " + p.Program + " are known only when it runs"
		}
	}
	return 0
}

// checkRelative makes a part undecided if the program changes its directory,
// and paths in its arguments leave that one.
func (g arguments) checkRelative(p *Part, args []value) {
	n := len(g.values["C"]) + len(g.values["directory"])
	if n > 1 || n == 1 && slices.ContainsFunc(args, func(v value) bool { return hasElement(v.text, "..") }) {
		p.UndecidedReason = "its paths are relative to another directory"
	}
}

// addOperandPaths adds the operands that are or may be paths. A URL among them
// makes Network at least Maybe.
func (a *analyzer) addOperandPaths(p *Part, spec program, g arguments, s *scope) {
	rest := g.operands
	g.checkRelative(p, rest)
	switch {
	case spec.has("text"):
		return
	case spec.has("skip") && !g.hasFlag(spec.list("skip")...) && len(rest) > 0:
		rest = rest[1:]
	case spec.has("first") && len(rest) > 1:
		rest = rest[:1]
	}
	for i, v := range rest {
		mode := spec.operandMode()
		if spec.has("last-written") && len(rest) > 1 && i == len(rest)-1 {
			mode = Writes
		}
		name, text, isAssignment := strings.Cut(v.text, "=")
		switch {
		case mode == Uses && strings.HasPrefix(v.text, "@"):
			p.UndecidedReason = "it may read its options from a file"
		case mode == Uses && isURL(v.text):
			p.Network = p.Network.Or(Maybe)
		case v.kind != unknown && (spec.has("references") && !leavesDir(v.text) || mode == Uses && strings.Contains(v.text, "\n")):
		default:
			p.Paths = append(p.Paths, a.locatePath(v, mode, s.dirs))
		}
		if within := pathWithin(v.text, ":"); mode == Uses && within != "" { // such as a:/b
			p.Paths = append(p.Paths, a.locatePath(value{text: within, kind: v.kind}, mode, s.dirs))
		}
		if isAssignment && text != "" { // such as PREFIX=/usr/local, or if=FILE of dd
			if name == "if" {
				mode = Reads
			}
			p.Paths = append(p.Paths, a.locatePath(value{text: text, kind: v.kind}, mode, s.dirs))
		}
	}
}

// pathWithin returns the first path in a list with these separators that may
// leave the working directory or is below .git; "" if there is none.
func pathWithin(text, separators string) string {
	if strings.Contains(text, "://") {
		return ""
	}
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if leavesDir(piece) || path.Base(piece) != ".git" && hasElement(piece, ".git") {
			return piece
		}
	}
	return ""
}

func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && slices.Contains([]string{"http", "https", "ftp", "ssh", "git", "rsync", "s3", "gs", "ws", "wss"}, scheme)
}
