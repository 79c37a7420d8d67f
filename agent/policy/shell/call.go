package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walkCall analyzes a simple command: assignments and words.
func (r *analyzer) walkCall(cmd *syntax.CallExpr, s *scope, c *cmdContext) {
	for _, a := range cmd.Assigns {
		r.walkSubstitutions(a, s, c)
		r.checkAssignment(a, s, c)
	}
	if len(cmd.Args) == 0 {
		for _, a := range cmd.Assigns {
			r.recordAssignment(a, s)
		}
		return
	}
	var words []value
	for _, w := range cmd.Args {
		r.walkSubstitutions(w, s, c)
		fields, ok := r.expandFields(w, s)
		if !ok {
			r.addPart(undecidedPart(c, r.sourceText(cmd), "its braces make too many words"))
			return
		}
		words = append(words, fields...)
	}
	r.walkProgram(words, s, c)
}

// walkProgram adds the parts of the program words[0] with its arguments,
// including the programs that it runs.
func (r *analyzer) walkProgram(words []value, s *scope, c *cmdContext) {
	if len(words) == 0 {
		return
	}
	name, args := words[0], words[1:]
	if !name.isLiteral() || name.text == "" {
		text := shortened(displayText(name.text))
		p := undecidedPart(c, "", "which program runs is known only when it does: %s", text)
		p.Program, p.Args, p.dirs = text, toWords(args), s.dirs
		for _, w := range args {
			p.Paths = append(p.Paths, r.locatePath(w, Uses, s.dirs))
		}
		r.addPart(p)
		return
	}
	if len(c.via) > maxDepth {
		r.addPart(undecidedPart(c, name.text, "too many programs run each other to be read"))
		return
	}
	p := Part{
		Program: path.Base(name.text), Known: true, Args: toWords(args), Via: c.via, Start: c.start, dirs: s.dirs,
		byPath: strings.Contains(name.text, "/"),
	}
	if p.byPath && !isSystemProgram(name.text) {
		p.Paths = append(p.Paths, r.locatePath(name, Uses, s.dirs))
	}
	if c.concurrent && slices.Contains(r.enclosingFuncs, p.Program) {
		p.System = Yes // a fork bomb: a function that starts itself concurrently
	}
	if r.unwrap(&p, args, s, c) {
		return
	}
	if spec, ok := programs()[tableName(p.Program)]; !ok || spec.runsAlways || spec.runsOperands {
		r.walkEmbedded(&p, args, s, c)
	}
	r.addEffects(&p, args, s, c)
	r.addPart(p)
}

func toWords(words []value) []Word {
	var args []Word
	for _, w := range words {
		word := w.toWord()
		word.Text = displayText(word.Text)
		args = append(args, word)
	}
	return args
}

// isSystemProgram reports whether name is the absolute path of a program in a
// bin or sbin directory.
func isSystemProgram(name string) bool {
	dir := path.Base(path.Dir(path.Clean(name)))
	return path.IsAbs(name) && (dir == "bin" || dir == "sbin")
}

// commandVariables are environment variables whose values programs run as
// commands.
var commandVariables = []string{
	"PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND",
	"GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "PROMPT_COMMAND", "BROWSER",
}

// lookupVariables are environment variables that change which program a name
// refers to, or run code before a program.
var lookupVariables = []string{
	"PATH", "LD_PRELOAD", "BASH_ENV", "ENV", "CDPATH", "SHELLOPTS", "BASHOPTS", "LESSOPEN", "LD_AUDIT",
	"DYLD_INSERT_LIBRARIES", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_SYSTEM", "MINI_TOOL_LOCAL", "MINI_TOOL_SOCKET", "MINI_TOOL_TOKEN", "MINI_TOOL_PATH",
}

// checkAssignment adds a part for an assignment that affects other commands;
// see checkVariable.
func (r *analyzer) checkAssignment(a *syntax.Assign, s *scope, c *cmdContext) {
	if a.Name == nil || a.Naked {
		return
	}
	v := value{kind: unknown}
	if a.Value == nil && a.Array == nil {
		v = value{}
	} else if a.Value != nil {
		v = r.expandWord(a.Value, s)
	}
	r.checkVariable(a.Name.Value, v, s, c)
}

// checkVariable adds a part if setting the variable, in an assignment or with
// env, affects what other commands run or access.
func (r *analyzer) checkVariable(name string, v value, s *scope, c *cmdContext) {
	inner := c.withWrapper(name + "=")
	switch {
	case name == "GIT_DIR" || name == "GIT_WORK_TREE":
		if at := r.locatePath(v, Uses, s.dirs); at.Location != Inside {
			r.addPart(Part{Known: true, Via: inner.via, Paths: []Path{at}, Start: c.start, dirs: s.dirs})
		}
	case slices.Contains(lookupVariables, name):
		r.addPart(undecidedPart(inner, name, "it sets %s, which changes what the names of programs mean", name))
	case name == "PS4" && (v.kind != known || strings.ContainsAny(v.text, "$`")):
		r.addPart(undecidedPart(inner, name, "it sets PS4, which is expanded before each command"))
	case slices.Contains(commandVariables, name):
		r.walkNestedScript(name, v, s, inner)
	}
}

// parseAssignment splits NAME=VALUE.
func parseAssignment(v value) (name string, text value, ok bool) {
	name, rest, ok := strings.Cut(v.text, "=")
	return name, value{text: rest, kind: v.kind}, ok && syntax.ValidName(name)
}

// walkNestedScript analyzes a script that a program passes to another shell.
func (r *analyzer) walkNestedScript(program string, v value, s *scope, c *cmdContext) {
	if v.kind != known {
		r.addPart(undecidedPart(c, program, "the script that %s runs is known only when it does", program))
		return
	}
	inner := *c
	inner.topLevel = false
	inner.shellDepth++
	inner.stdin, inner.input = stdinEmpty, ""
	child := s.clone()
	child.vars = map[string]value{}
	r.walkScript(v.text, child, &inner)
}

// addUndecided adds p as a part whose program is known, but not what that
// program runs.
func (r *analyzer) addUndecided(p *Part, c *cmdContext) {
	u := undecidedPart(c, p.Program, "what %s runs is known only when it does", p.Program)
	u.Known, u.Args, u.Paths, u.dirs, u.Sudo = true, p.Args, p.Paths, p.dirs, u.Sudo.Or(p.Sudo)
	r.addPart(u)
}

// wrappers run the program that follows their options. The values list the
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

// projectRunners run a program in the environment of a project, after "run" or
// "exec".
var projectRunners = []string{"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "bundle"}

const projectRunnerOptions = "n p C name prefix cwd with python project directory extra group env-file"

// unwrap analyzes the command that a program such as bash or sudo runs. It
// reports whether the analysis of the program is complete; if not, the caller
// adds p.
func (r *analyzer) unwrap(p *Part, args []value, s *scope, c *cmdContext) bool {
	name := tableName(p.Program)
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "fish":
		return r.walkShell(p, args, s, c)
	case "source", ".":
		return r.walkSource(p, args, c)
	case "eval":
		return r.walkEval(p, args, s, c)
	case "trap":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 1 && !strings.HasPrefix(args[0].text, "-") {
			r.walkNestedScript(p.Program, args[0], s, c.withWrapper(p.Program))
			return true
		}
		return false
	case "find":
		return r.walkFind(p, args, s, c)
	}
	options, ok := wrappers[name]
	if slices.Contains(projectRunners, name) && len(args) > 1 && (args[0].text == "run" || args[0].text == "exec") {
		options, ok, args = projectRunnerOptions, true, args[1:]
	}
	return ok && r.unwrapWrapper(name, options, p, args, s, c)
}

// unwrapWrapper analyzes the program that follows the options of a wrapper. Its
// result is that of unwrap.
func (r *analyzer) unwrapWrapper(name, options string, p *Part, args []value, s *scope, c *cmdContext) bool {
	w := wrapperOptions{analyzer: r, part: p, scope: s, xargsInput: c.stdin}
	rest := r.skipOptions(args, options, func(option string, v value) { w.add(name, option, v) })
	if rest == nil || w.undecided {
		r.addUndecided(p, c)
		return true
	}
	rest = append(w.words, rest...)
	inner := c.withWrapper(p.Program)
	for name == "env" || name == "sudo" {
		if len(rest) == 0 {
			break
		}
		variable, v, ok := parseAssignment(rest[0])
		if !ok && rest[0].text != "-" {
			break
		}
		r.checkVariable(variable, v, w.scope, inner)
		rest = rest[1:]
	}
	if name == "timeout" && len(rest) > 0 {
		rest = rest[1:]
	}
	if len(rest) == 0 || w.lookupOnly {
		p.listing = name == "xargs" && w.xargsInput == stdinFileNames
		return false
	}
	if len(p.Paths) > 0 || p.Network != No {
		r.addPart(*p)
	}
	from := len(r.parts)
	if name == "xargs" {
		inner.stdin, inner.input = stdinEmpty, ""
		argument := value{text: "...", kind: unknown}
		if w.xargsInput == stdinFileNames {
			argument = value{text: placeholder, kind: workspaceName}
		}
		r.walkWithArgument(rest, w.xargsMark, argument, w.scope, inner)
	} else {
		r.walkProgram(rest, w.scope, inner)
	}
	if name == "sudo" || name == "doas" {
		for i := from; i < len(r.parts); i++ {
			r.parts[i].Sudo = Yes
		}
	}
	return true
}

// wrapperOptions collects the options of a wrapper.
type wrapperOptions struct {
	*analyzer
	part       *Part
	scope      *scope
	words      []value   // the program and arguments given in an option (env -S)
	xargsMark  string    // the placeholder that xargs replaces
	xargsInput stdinKind // where xargs reads arguments from
	lookupOnly bool      // command -v runs nothing
	undecided  bool
}

func (w *wrapperOptions) add(wrapper, name string, v value) {
	switch wrapper + " " + name {
	case "env u", "env unset":
		w.undecided = w.undecided || v.text == "PATH"
	case "env C", "env chdir", "sudo D", "sudo chdir":
		at := w.locatePath(v, Reads, w.scope.dirs)
		w.part.Paths = append(w.part.Paths, at)
		w.scope = w.scope.clone()
		w.scope.dirs = nil
		if v.kind == known && at.Location != Unknown {
			w.scope.dirs = []string{at.Text}
		}
	case "env S", "env split-string":
		w.undecided = w.undecided || v.kind != known || strings.ContainsAny(v.text, "\\$'\"")
		for _, word := range strings.Fields(v.text) {
			w.words = append(w.words, value{text: word})
		}
	case "xargs I", "xargs i", "xargs replace":
		if w.xargsMark = v.text; w.xargsMark == "" {
			w.xargsMark = "{}"
		}
	case "xargs a", "xargs arg-file":
		w.xargsInput = stdinUnknown
		w.part.Paths = append(w.part.Paths, w.locatePath(v, Reads, w.scope.dirs))
	case "command v", "command V":
		w.lookupOnly = true
	default:
		if slices.Contains(projectRunners, wrapper) && name == "with" {
			w.part.Network = Yes
		}
	}
}

// walkWithArgument analyzes a program that xargs or find -exec runs with
// further arguments. The value argument stands for them: it replaces mark, or
// is appended if mark is empty. If the program removes them, that is a
// recursive delete.
func (r *analyzer) walkWithArgument(words []value, mark string, argument value, s *scope, c *cmdContext) {
	var all []value
	for _, w := range words {
		if mark != "" && strings.Contains(w.text, mark) {
			w = value{text: strings.ReplaceAll(w.text, mark, argument.text), kind: max(w.kind, argument.kind)}
		}
		all = append(all, w)
	}
	if mark == "" {
		all = append(all, argument)
	}
	from := len(r.parts)
	r.walkProgram(all, s, c)
	for i := from; i < len(r.parts); i++ {
		if p := &r.parts[i]; slices.Contains(removers, tableName(p.Program)) {
			p.RecursiveDelete = Yes
		}
	}
}

// skipOptions calls each for every option before the first operand, and returns
// the arguments from that operand on. withValue lists the options that take a
// value; one-letter names are short options. skipOptions returns nil if an
// argument that is not an option's value is known only at run time. This applies
// to the first operand, too, unless it follows "--".
func (r *analyzer) skipOptions(args []value, withValue string, each func(name string, v value)) []value {
	options := strings.Fields(withValue)
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
			name, text, hasValue := strings.Cut(v.text[2:], "=")
			at := slices.IndexFunc(options, func(long string) bool { return len(long) > 1 && strings.HasPrefix(long, name) })
			optionValue := value{text: text, kind: v.kind}
			if at >= 0 && !slices.Contains(options, name) {
				name = options[at] // long options may be abbreviated
			}
			if !hasValue && at >= 0 {
				optionValue = next()
			}
			each(name, optionValue)
		default:
			for at := 1; at < len(v.text); at++ {
				name := v.text[at : at+1]
				if !slices.Contains(options, name) {
					each(name, value{})
					continue
				}
				optionValue := value{text: v.text[at+1:], kind: v.kind}
				if optionValue.text == "" {
					optionValue = next()
				}
				each(name, optionValue)
				break
			}
		}
	}
	return []value{}
}

// walkShell analyzes the script of a shell: the argument of -c or standard
// input. Script files are not read.
func (r *analyzer) walkShell(p *Part, args []value, s *scope, c *cmdContext) bool {
	hasScriptOption, readsStdin, i := false, false, 0
	for ; i < len(args); i++ {
		text := args[i].text
		if args[i].kind != known || len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "--") {
			if text == "--rcfile" || text == "--init-file" {
				r.addUndecided(p, c)
				i++
			}
			continue
		}
		hasScriptOption = hasScriptOption || text[0] == '-' && strings.Contains(text, "c")
		readsStdin = readsStdin || strings.Contains(text, "s")
		if strings.HasSuffix(text, "o") || strings.HasSuffix(text, "O") {
			i++
		}
	}
	isFile := i < len(args) && !readsStdin && args[i].text != "-"
	switch {
	case hasScriptOption && i < len(args):
		r.walkNestedScript(p.Program, args[i], s, c.withWrapper(p.Program))
	case hasScriptOption:
		return false
	case isFile && args[i].kind == known && !isInputPath(args[i].text):
		p.Paths = append(p.Paths, r.locatePath(args[i], Reads, s.dirs))
		r.parseArguments(p, program{}, args[i+1:], s)
		r.addPart(*p)
	case i < len(args) && (isFile || args[i].kind == unknown):
		r.addUndecided(p, c)
	case c.stdin == stdinScript:
		r.walkNestedScript(p.Program, value{text: c.input}, s, c.withWrapper(p.Program))
	case c.stdin != stdinEmpty:
		r.addUndecided(p, c)
	default:
		return false
	}
	return true
}

// isInputPath reports whether a path refers to an open file descriptor, such as
// standard input, whose content is unknown.
func isInputPath(name string) bool {
	open := strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/fd/")
	return open || name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/")
}

// walkSource handles source. If the script's file is known only at run time or
// is an open file descriptor, it adds an undecided part and returns true.
func (r *analyzer) walkSource(p *Part, args []value, c *cmdContext) bool {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].kind == known && !isInputPath(args[0].text) {
		return false
	}
	r.addUndecided(p, c)
	return true
}

// walkEval analyzes the arguments of eval as a script of the same shell.
func (r *analyzer) walkEval(p *Part, args []value, s *scope, c *cmdContext) bool {
	var words []string
	for _, v := range args {
		if !v.isLiteral() {
			r.addUndecided(p, c)
			return true
		}
		words = append(words, v.text)
	}
	inner := c.withWrapper(p.Program)
	inner.topLevel = false
	inner.shellDepth++
	r.walkScript(strings.Join(words, " "), s, inner)
	return true
}

// walkFind analyzes find, which may delete and write files and run programs.
func (r *analyzer) walkFind(p *Part, args []value, s *scope, c *cmdContext) bool {
	var roots []value
	i := 0
	for ; i < len(args); i++ {
		if arg := args[i].text; arg != "-H" && arg != "-L" && arg != "-P" && !strings.HasPrefix(arg, "-O") {
			if strings.HasPrefix(arg, "-") || arg == "(" || arg == "!" {
				break
			}
			roots = append(roots, args[i])
		}
	}
	if len(roots) == 0 {
		roots = []value{{text: "."}}
	}
	found := value{text: placeholder, kind: workspaceName}
	mode := Reads
	p.listing = true
	var commands [][]value
	for ; i < len(args); i++ {
		arg := args[i].text
		if args[i].kind == unknown {
			continue // most likely a pattern: actions are rarely quoted
		}
		switch arg {
		case "-files0-from":
			roots = append(roots, value{text: "what -files0-from names", kind: unknown})
		case "-delete":
			mode, p.RecursiveDelete = Writes, Yes
		case "-newer", "-samefile":
			if i++; i < len(args) {
				p.Paths = append(p.Paths, r.locatePath(args[i], Reads, s.dirs))
			}
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(args) {
				p.Paths = append(p.Paths, r.locatePath(args[i], Writes, s.dirs))
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
			commands = append(commands, args[from:min(i, len(args))])
		}
	}
	for _, root := range roots {
		location := r.locatePath(root, mode, s.dirs)
		p.Paths = append(p.Paths, location)
		if location.Location != Inside {
			found, p.listing = root, false
		}
	}
	p.listing = p.listing && mode == Reads
	r.addPart(*p)
	for _, words := range commands {
		r.walkWithArgument(words, "{}", found, s, c.withWrapper(p.Program))
	}
	return true
}

// notablePrograms are programs to look for in the arguments of an unknown
// program, which probably runs them.
var notablePrograms = []string{
	"rm", "sudo", "doas", "su", "curl", "wget", "ssh", "scp", "rsync", "dd", "mkfs", "shred", "bash", "sh", "zsh", "dash",
	"env", "xargs", "find", "git", "pip", "npm", "docker", "chmod", "chown", "nc", "kill", "killall", "pkill",
}

// walkEmbedded analyzes what an unknown program may run: the arguments from the
// name of a notable program on, or an argument that is a command line beginning
// with such a name.
func (r *analyzer) walkEmbedded(p *Part, args []value, s *scope, c *cmdContext) {
	if len(c.via) > maxShellDepth {
		return
	}
	inner := c.withWrapper(p.Program)
	inner.stdin, inner.input = stdinEmpty, ""
	for i, v := range args {
		if !v.isLiteral() {
			continue
		}
		if slices.Contains(notablePrograms, path.Base(v.text)) && i+1 < len(args) {
			r.walkProgram(args[i:], s, inner)
			return
		}
		text := v.text
		if _, after, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "--") {
			text = after // such as --command='rm x'
		}
		text = strings.TrimLeft(text, ":!+ ")
		first, rest, _ := strings.Cut(text, " ")
		if strings.TrimSpace(rest) != "" && slices.Contains(notablePrograms, path.Base(first)) {
			r.walkNestedScript(p.Program, value{text: text}, s, inner)
		}
	}
}
