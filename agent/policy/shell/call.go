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
	if name := words[0]; !name.literal() || name.text == "" {
		p := undecided(c, "", "which program runs is known only when it does: %s", shorten(shownText(name.text)))
		p.Program, p.Args, p.dirs = shorten(shownText(name.text)), argumentsOf(words[1:]), s.dirs
		for _, w := range words[1:] {
			p.Paths = append(p.Paths, r.located(w, Uses, s.dirs))
		}
		r.add(p)
		return
	}
	if len(c.via) > maxDepth {
		r.add(undecided(c, words[0].text, "too many programs run each other to be read"))
		return
	}
	name := path.Base(words[0].text)
	p := Part{
		Program: name, Known: true, Args: argumentsOf(words[1:]), Via: c.via, Start: c.start, dirs: s.dirs,
		byPath: strings.Contains(words[0].text, "/"),
	}
	if p.byPath && !installed(words[0].text) {
		p.Paths = append(p.Paths, r.located(words[0], Uses, s.dirs))
	}
	if c.piped && slices.Contains(r.functions, name) {
		p.System = Yes // a function that starts itself, and does not wait for it
	}
	args := words[1:]
	if text, ok := r.work.aliases[name]; ok {
		r.aliased(name, text, args, s, c)
	}
	if r.wrapped(&p, args, s, c) {
		return
	}
	if _, ok := programs[baseOf(name)]; !ok {
		r.carried(&p, args, s, c)
	}
	r.effects(&p, args, s, c)
	r.add(p)
}

// aliased reads a call of an alias, which may be one that was meant otherwise.
func (r *reader) aliased(name, text string, args []value, s *scope, c *context) {
	script := text
	for _, v := range args {
		quoted, err := syntax.Quote(v.text, syntax.LangBash)
		if err != nil || !v.literal() {
			r.add(undecided(c, name, "what becomes of this alias is known only when it runs"))
			return
		}
		script += " " + quoted
	}
	delete(r.work.aliases, name) // one is not expanded within itself
	r.nested(script, s, c.within(name))
	r.work.aliases[name] = text
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
	"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH",
	"GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "PROMPT_COMMAND", "BROWSER",
}

// deciding are variables that say which program a name stands for, or run
// something before it.
var deciding = []string{
	"PATH", "LD_PRELOAD", "BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "LESSOPEN",
	"LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
	"MINI_TOOL_LOCAL", "MINI_TOOL_SOCKET", "MINI_TOOL_TOKEN", "MINI_TOOL_PATH",
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
	inner := *c
	inner.via = append(slices.Clone(c.via), name+"=")
	switch {
	case name == "GIT_DIR" || name == "GIT_WORK_TREE":
		if at := r.located(v, Uses, s.dirs); at.Where != Inside {
			r.add(Part{Known: true, Via: inner.via, Paths: []Path{at}, Start: c.start, dirs: s.dirs})
		}
	case slices.Contains(deciding, name):
		r.add(undecided(&inner, name, "it sets %s, which changes what the names of programs mean", name))
	case name == "PS4" && (v.kind != known || strings.ContainsAny(v.text, "$`")):
		r.add(undecided(&inner, name, "it sets PS4, which is expanded before each command"))
	case !slices.Contains(scripted, name):
	case v.kind != known:
		r.add(undecided(&inner, name, "it sets %s, which is run, to something known only then", name))
	default:
		r.nested(v.text, s, &inner)
	}
}

// nested reads a script that another shell would run.
func (r *reader) nested(text string, s *scope, c *context) {
	inner := *c
	inner.top = false
	inner.nested++
	child := s.clone()
	child.vars = map[string]value{}
	r.script(text, child, &inner)
}

// changeFolder is cd and its kin, which take ".." out of the text of a path
// before they follow its links, but for those that are told not to.
func (r *reader) changeFolder(p *Part, args []value, s *scope) {
	before := slices.Clone(s.dirs)
	physical := r.physical
	for len(args) > 0 && (args[0].text == "-P" || args[0].text == "-L" || args[0].text == "-e" || args[0].text == "--" || args[0].text == "-n") {
		physical = physical && args[0].text != "-L" || args[0].text == "-P"
		args = args[1:]
	}
	to := value{text: r.at.Home}
	if r.at.Home == "" {
		to.kind = unknown
	}
	switch {
	case p.Program == "popd":
		if n := len(s.stack); n > 0 && len(args) == 0 {
			s.dirs, s.stack = s.stack[n-1], s.stack[:n-1]
		} else {
			s.dirs = nil
		}
		return
	case len(args) > 0 && args[0].text == "-", len(args) == 0 && p.Program == "pushd":
		s.dirs = nil // it leads back to where another cd was looked at
		return
	case len(args) > 0:
		to = args[0]
	}
	if p.Program == "pushd" {
		s.stack = append(s.stack, before)
	}
	s.dirs = nil
	if to.kind == unknown || len(before) == 0 && !path.IsAbs(to.text) || physical && r.at.Resolve != nil {
		p.Paths = append(p.Paths, r.located(to, Reads, before))
		return
	}
	if path.IsAbs(to.text) {
		before = []string{"/"}
	}
	at := value{text: ".", kind: to.kind, glob: to.glob}
	var dirs []string
	for _, dir := range before {
		dirs = append(dirs, path.Join(dir, to.text))
		s.dirs = append(s.dirs, path.Join(dir, shownText(to.text)))
	}
	p.Paths = append(p.Paths, r.located(at, Reads, dirs))
}
