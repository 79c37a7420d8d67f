package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call reads a simple command.
func (r *reader) call(cmd *syntax.CallExpr, s *scope, c *context) {
	for _, a := range cmd.Assigns {
		r.substitutions(a, s, c)
		r.meaningful(a, s, c)
	}
	if len(cmd.Args) == 0 {
		for _, a := range cmd.Assigns {
			r.assign(a, s)
		}
		return
	}
	var words []value
	for _, w := range cmd.Args {
		r.substitutions(w, s, c)
		fields, ok := r.fields(w, s)
		if !ok {
			r.add(undecided(c, r.written(cmd), "its braces make too many words"))
			return
		}
		words = append(words, fields...)
	}
	r.run(words, s, c)
}

// run is a program with its arguments: what it is, and whatever it runs in its
// turn.
func (r *reader) run(words []value, s *scope, c *context) {
	if len(words) == 0 {
		return
	}
	name, args := words[0], words[1:]
	if !name.literal() || name.text == "" {
		text := shorten(shownText(name.text))
		p := undecided(c, "", "which program runs is known only when it does: %s", text)
		p.Program, p.Args, p.dirs = text, argumentsOf(args), s.dirs
		for _, w := range args {
			p.Paths = append(p.Paths, r.located(w, Uses, s.dirs))
		}
		r.add(p)
		return
	}
	if len(c.via) > maxDepth {
		r.add(undecided(c, name.text, "too many programs run each other to be read"))
		return
	}
	p := Part{
		Program: path.Base(name.text), Known: true, Args: argumentsOf(args), Via: c.via, Start: c.start, dirs: s.dirs,
		byPath: strings.Contains(name.text, "/"),
	}
	if p.byPath && !installed(name.text) {
		p.Paths = append(p.Paths, r.located(name, Uses, s.dirs))
	}
	if c.piped && slices.Contains(r.functions, p.Program) {
		p.System = Yes // a function that starts itself, and does not wait for it
	}
	if r.runsAnother(&p, args, s, c) {
		return
	}
	if known, ok := programs()[baseOf(p.Program)]; !ok || known.runs || known.carries {
		r.carried(&p, args, s, c)
	}
	r.effects(&p, args, s, c)
	r.add(p)
}

func argumentsOf(words []value) []Word {
	var args []Word
	for _, w := range words {
		one := w.word()
		one.Text = shownText(one.Text)
		args = append(args, one)
	}
	return args
}

// installed says of the path of a program that it is one of the machine's.
func installed(name string) bool {
	dir := path.Base(path.Dir(path.Clean(name)))
	return path.IsAbs(name) && (dir == "bin" || dir == "sbin")
}

// scripted are variables whose values programs run as commands.
var scripted = []string{
	"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND",
	"GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "PROMPT_COMMAND", "BROWSER",
}

// deciding are variables that say which program a name stands for, or run
// something before it.
var deciding = []string{
	"PATH", "LD_PRELOAD", "BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "LESSOPEN", "LD_AUDIT",
	"DYLD_INSERT_LIBRARIES", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_SYSTEM", "MINI_TOOL_LOCAL", "MINI_TOOL_SOCKET", "MINI_TOOL_TOKEN", "MINI_TOOL_PATH",
}

// meaningful notes variables that change what other commands do.
func (r *reader) meaningful(a *syntax.Assign, s *scope, c *context) {
	if a.Name == nil || a.Naked {
		return
	}
	v := value{kind: unknown}
	if a.Value == nil && a.Array == nil {
		v = value{}
	} else if a.Value != nil {
		v = r.value(a.Value, s)
	}
	r.setting(a.Name.Value, v, s, c)
}

// setting notes one variable, which may also be set by env.
func (r *reader) setting(name string, v value, s *scope, c *context) {
	inner := c.within(name + "=")
	switch {
	case name == "GIT_DIR" || name == "GIT_WORK_TREE":
		if at := r.located(v, Uses, s.dirs); at.Where != Inside {
			r.add(Part{Known: true, Via: inner.via, Paths: []Path{at}, Start: c.start, dirs: s.dirs})
		}
	case slices.Contains(deciding, name):
		r.add(undecided(inner, name, "it sets %s, which changes what the names of programs mean", name))
	case name == "PS4" && (v.kind != known || strings.ContainsAny(v.text, "$`")):
		r.add(undecided(inner, name, "it sets PS4, which is expanded before each command"))
	case slices.Contains(scripted, name):
		r.scriptOf(name, v, s, inner)
	}
}

// assignment cuts NAME=VALUE, which a word may be.
func assignment(v value) (name string, text value, ok bool) {
	name, rest, ok := strings.Cut(v.text, "=")
	return name, value{text: rest, kind: v.kind}, ok && syntax.ValidName(name)
}

// scriptOf reads a text that program gives to another shell.
func (r *reader) scriptOf(program string, v value, s *scope, c *context) {
	if v.kind != known {
		r.add(undecided(c, program, "the script that %s runs is known only when it does", program))
		return
	}
	inner := *c
	inner.top = false
	inner.nested++
	inner.stdin, inner.input = nothing, ""
	child := s.clone()
	child.vars = map[string]value{}
	r.script(v.text, child, &inner)
}

// unclear is a part whose program is known, and what that runs is not.
func (r *reader) unclear(p *Part, c *context) {
	u := undecided(c, p.Program, "what %s runs is known only when it does", p.Program)
	u.Known, u.Args, u.Paths, u.dirs, u.Sudo = true, p.Args, p.Paths, p.dirs, u.Sudo.Or(p.Sudo)
	r.add(u)
}

// wrappers run the program behind their options. The words are those of their
// options that take a value.
var wrappers = map[string]string{
	"sudo":    "u g p h C D R T U r t user group prompt host close-from chdir chroot role type command-timeout other-user",
	"doas":    "u C a",
	"env":     "u C S P unset chdir split-string",
	"xargs":   "a E d I L n P s arg-file delimiter max-args max-procs max-chars process-slot-var",
	"command": "", "builtin": "", "exec": "a", "nohup": "", "setsid": "",
	"nice": "n adjustment", "time": "f o format output", "timeout": "k s kill-after signal",
	"stdbuf": "i o e input output error",
}

// runners are tools of projects that run a program in the environment of the
// project, behind "run" or "exec".
var runners = []string{"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "bundle"}

const runnerOptions = "n p C name prefix cwd with python project directory extra group env-file"

// runsAnother reads what a program is told to run; false where that is nothing, or
// where the program does more than that.
func (r *reader) runsAnother(p *Part, args []value, s *scope, c *context) bool {
	name := baseOf(p.Program)
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "fish":
		return r.shell(p, args, s, c)
	case "source", ".":
		return r.source(p, args, c)
	case "eval":
		return r.eval(p, args, s, c)
	case "trap":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 1 && !strings.HasPrefix(args[0].text, "-") {
			r.scriptOf(p.Program, args[0], s, c.within(p.Program))
			return true
		}
		return false
	case "find":
		return r.find(p, args, s, c)
	}
	options, ok := wrappers[name]
	if slices.Contains(runners, name) && len(args) > 1 && (args[0].text == "run" || args[0].text == "exec") {
		options, ok, args = runnerOptions, true, args[1:]
	}
	return ok && r.wrapped(name, options, p, args, s, c)
}

// wrapped reads the program behind the options of another.
func (r *reader) wrapped(name, options string, p *Part, args []value, s *scope, c *context) bool {
	w := wrapping{reader: r, part: p, scope: s, from: c.stdin}
	rest := r.options(args, options, func(option string, v value) { w.option(name, option, v) })
	if rest == nil || w.unclear {
		r.unclear(p, c)
		return true
	}
	rest = append(w.words, rest...)
	inner := c.within(p.Program)
	for name == "env" || name == "sudo" {
		if len(rest) == 0 {
			break
		}
		variable, v, ok := assignment(rest[0])
		if !ok && rest[0].text != "-" {
			break
		}
		r.setting(variable, v, w.scope, inner)
		rest = rest[1:]
	}
	if name == "timeout" && len(rest) > 0 {
		rest = rest[1:]
	}
	if len(rest) == 0 || w.named {
		p.listing = name == "xargs" && w.from == listed
		return false
	}
	if len(p.Paths) > 0 || p.Network != No {
		r.add(*p)
	}
	from := len(r.parts)
	if name == "xargs" {
		inner.stdin, inner.input = nothing, ""
		given := value{text: "...", kind: unknown}
		if w.from == listed {
			given = value{text: placeholder, kind: plain}
		}
		r.handed(rest, w.mark, given, w.scope, inner)
	} else {
		r.run(rest, w.scope, inner)
	}
	if name == "sudo" || name == "doas" {
		for i := from; i < len(r.parts); i++ {
			r.parts[i].Sudo = Yes
		}
	}
	return true
}

// wrapping is what the options of a wrapper say.
type wrapping struct {
	*reader
	part    *Part
	scope   *scope
	words   []value // of the program, from an option
	mark    string  // what xargs replaces
	from    feed    // where xargs takes arguments from
	named   bool    // command -v runs nothing
	unclear bool
}

func (w *wrapping) option(wrapper, name string, v value) {
	switch wrapper + " " + name {
	case "env u", "env unset":
		w.unclear = w.unclear || v.text == "PATH"
	case "env C", "env chdir", "sudo D", "sudo chdir":
		at := w.located(v, Reads, w.scope.dirs)
		w.part.Paths = append(w.part.Paths, at)
		w.scope = w.scope.clone()
		w.scope.dirs = nil
		if v.kind == known && at.Where != Unknown {
			w.scope.dirs = []string{at.Text}
		}
	case "env S", "env split-string":
		w.unclear = w.unclear || v.kind != known || strings.ContainsAny(v.text, "\\$'\"")
		for _, word := range strings.Fields(v.text) {
			w.words = append(w.words, value{text: word})
		}
	case "xargs I", "xargs i", "xargs replace":
		if w.mark = v.text; w.mark == "" {
			w.mark = "{}"
		}
	case "xargs a", "xargs arg-file":
		w.from = something
		w.part.Paths = append(w.part.Paths, w.located(v, Reads, w.scope.dirs))
	case "command v", "command V":
		w.named = true
	default:
		if slices.Contains(runners, wrapper) && name == "with" {
			w.part.Network = Yes
		}
	}
}

// handed runs a program with arguments from somewhere else in the place of a
// mark, or behind its own. rm of what was found is a deletion of many.
func (r *reader) handed(words []value, mark string, given value, s *scope, c *context) {
	var all []value
	for _, w := range words {
		if mark != "" && strings.Contains(w.text, mark) {
			w = value{text: strings.ReplaceAll(w.text, mark, given.text), kind: max(w.kind, given.kind)}
		}
		all = append(all, w)
	}
	if mark == "" {
		all = append(all, given)
	}
	from := len(r.parts)
	r.run(all, s, c)
	for i := from; i < len(r.parts); i++ {
		if q := &r.parts[i]; slices.Contains(removers, baseOf(q.Program)) {
			q.RecursiveDelete = Yes
		}
	}
}

// options skips the options before the first operand. withValue are those that
// take one; short ones are letters. each is called for every option. nil means that
// a word there is known only when the command runs.
func (r *reader) options(args []value, withValue string, each func(name string, v value)) []value {
	takes := strings.Fields(withValue)
	for i := 0; i < len(args); i++ {
		v := args[i]
		next := func() value {
			if i++; i < len(args) {
				return args[i]
			}
			return value{}
		}
		switch {
		case v.kind == unknown:
			return nil
		case v.text == "--":
			return append([]value{}, args[i+1:]...)
		case !strings.HasPrefix(v.text, "-") || v.text == "-":
			return append([]value{}, args[i:]...)
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			at := slices.IndexFunc(takes, func(long string) bool { return len(long) > 1 && strings.HasPrefix(long, name) })
			given := value{text: text, kind: v.kind}
			if at >= 0 && !slices.Contains(takes, name) {
				name = takes[at] // it may be shortened
			}
			if !has && at >= 0 {
				given = next()
			}
			each(name, given)
		default:
			for at := 1; at < len(v.text); at++ {
				name := v.text[at : at+1]
				if !slices.Contains(takes, name) {
					each(name, value{})
					continue
				}
				given := value{text: v.text[at+1:], kind: v.kind}
				if given.text == "" {
					given = next()
				}
				each(name, given)
				break
			}
		}
	}
	return []value{}
}

// shell reads the script of a shell: an argument, its input, or a file, which is
// not looked into.
func (r *reader) shell(p *Part, args []value, s *scope, c *context) bool {
	given, fromInput, i := false, false, 0
	for ; i < len(args); i++ {
		text := args[i].text
		if args[i].kind != known || len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "--") {
			if text == "--rcfile" || text == "--init-file" {
				r.unclear(p, c)
				i++
			}
			continue
		}
		given = given || text[0] == '-' && strings.Contains(text, "c")
		fromInput = fromInput || strings.Contains(text, "s")
		if strings.HasSuffix(text, "o") || strings.HasSuffix(text, "O") {
			i++
		}
	}
	isFile := i < len(args) && !fromInput && args[i].text != "-"
	switch {
	case given && i < len(args):
		r.scriptOf(p.Program, args[i], s, c.within(p.Program))
	case given:
		return false
	case isFile && args[i].kind == known && !streamed(args[i].text):
		p.Paths = append(p.Paths, r.located(args[i], Reads, s.dirs))
		r.arguments(p, program{}, args[i+1:], s)
		r.add(*p)
	case i < len(args) && (isFile || args[i].kind == unknown):
		r.unclear(p, c)
	case c.stdin == script:
		r.scriptOf(p.Program, value{text: c.input}, s, c.within(p.Program))
	case c.stdin != nothing:
		r.unclear(p, c)
	default:
		return false
	}
	return true
}

// streamed says that a name is one of what comes in, and no file.
func streamed(name string) bool {
	open := strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/fd/")
	return open || name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/")
}

// source is about scripts that are not in a file.
func (r *reader) source(p *Part, args []value, c *context) bool {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].kind == known && !streamed(args[0].text) {
		return false
	}
	r.unclear(p, c)
	return true
}

// eval reads its arguments as a script of the same shell.
func (r *reader) eval(p *Part, args []value, s *scope, c *context) bool {
	var words []string
	for _, v := range args {
		if !v.literal() {
			r.unclear(p, c)
			return true
		}
		words = append(words, v.text)
	}
	inner := c.within(p.Program)
	inner.top = false
	inner.nested++
	r.script(strings.Join(words, " "), s, inner)
	return true
}

// find deletes, writes and runs.
func (r *reader) find(p *Part, args []value, s *scope, c *context) bool {
	var roots []value
	i := 0
	for ; i < len(args); i++ {
		if t := args[i].text; t != "-H" && t != "-L" && t != "-P" && !strings.HasPrefix(t, "-O") {
			if strings.HasPrefix(t, "-") || t == "(" || t == "!" {
				break
			}
			roots = append(roots, args[i])
		}
	}
	if len(roots) == 0 {
		roots = []value{{text: "."}}
	}
	found := value{text: placeholder, kind: plain}
	mode := Reads
	p.listing = true
	var runs [][]value
	for ; i < len(args); i++ {
		t := args[i].text
		if args[i].kind == unknown {
			continue // a pattern, most likely; an action has no quotes around it
		}
		switch t {
		case "-files0-from":
			roots = append(roots, value{text: "what -files0-from names", kind: unknown})
		case "-delete":
			mode, p.RecursiveDelete = Writes, Yes
		case "-newer", "-samefile":
			if i++; i < len(args) {
				p.Paths = append(p.Paths, r.located(args[i], Reads, s.dirs))
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(args) {
				p.Paths = append(p.Paths, r.located(args[i], Writes, s.dirs))
			}
			p.listing = false
		case "-printf":
			p.listing = false
		case "-exec", "-execdir", "-ok", "-okdir":
			p.listing = false
			from := i + 1
			for i++; i < len(args) && args[i].text != ";" && (args[i].text != "+" || args[i-1].text != "{}"); i++ {
				continue
			}
			runs = append(runs, args[from:min(i, len(args))])
		}
	}
	for _, root := range roots {
		where := r.located(root, mode, s.dirs)
		p.Paths = append(p.Paths, where)
		if where.Where != Inside {
			found, p.listing = root, false
		}
	}
	p.listing = p.listing && mode == Reads
	r.add(*p)
	for _, words := range runs {
		r.handed(words, "{}", found, s, c.within(p.Program))
	}
	return true
}

// telling are programs that are looked for among the arguments of one that mini
// knows nothing of: chances are that it runs them.
var telling = []string{
	"rm", "sudo", "doas", "su", "curl", "wget", "ssh", "scp", "rsync", "dd", "mkfs", "shred", "bash", "sh", "zsh", "dash",
	"env", "xargs", "find", "git", "pip", "npm", "docker", "chmod", "chown", "nc", "kill", "killall", "pkill",
}

// carried reads what a program mini knows nothing of may run: words from the
// name of a telling program on, or a text that begins with one.
func (r *reader) carried(p *Part, args []value, s *scope, c *context) {
	if len(c.via) > maxNested {
		return
	}
	inner := c.within(p.Program)
	inner.stdin, inner.input = nothing, ""
	for i, v := range args {
		if !v.literal() {
			continue
		}
		if slices.Contains(telling, path.Base(v.text)) && i+1 < len(args) {
			r.run(args[i:], s, inner)
			return
		}
		text := v.text
		if _, after, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "--") {
			text = after // as --command='rm x'
		}
		text = strings.TrimLeft(text, ":!+ ")
		first, rest, _ := strings.Cut(text, " ")
		if strings.TrimSpace(rest) != "" && slices.Contains(telling, path.Base(first)) {
			r.scriptOf(p.Program, value{text: text}, s, inner)
		}
	}
}
