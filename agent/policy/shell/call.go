package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// walkCall analyzes a simple command: assignments and words.
func (a *analyzer) walkCall(cmd *syntax.CallExpr, s *scope, c cmdContext) {
	for _, assign := range cmd.Assigns {
		if len(cmd.Args) > 0 && cmd.Args[0].Lit() == "read" && assign.Name != nil && assign.Name.Value == "IFS" {
			continue // IFS= read -r line
		}
		a.walkAssignment(assign, len(cmd.Args) > 0, s, c)
	}
	var words []value
	for _, w := range cmd.Args {
		a.walkSubstitutions(w, s, c)
		words = append(words, a.expandWord(w, s))
	}
	a.walkProgram(words, s, c)
}

// walkProgram adds the parts of the program words[0] with its arguments,
// including the programs that it runs.
func (a *analyzer) walkProgram(words []value, s *scope, c cmdContext) {
	if len(words) == 0 || a.stopped {
		return
	}
	if len(c.via) > maxDepth {
		a.addUndecided(c, words[0].text, "too many programs run each other to be read")
		return
	}
	name, args := words[0], words[1:]
	p := Part{Via: c.via, Start: c.start}
	for _, v := range args {
		p.Args = append(p.Args, v.toWord())
	}
	var spec program
	var key string
	var isListed bool
	if name.isLiteral() && name.text != "" {
		p.Program, p.Known, p.byPath = path.Base(name.text), true, strings.Contains(name.text, "/")
		key = tableName(p.Program)
		spec, isListed = programs()[key]
		if p.byPath && !slices.Contains(systemDirs, path.Dir(name.text)) { // a program of the workspace may do what a script may do
			p.Paths = append(p.Paths, a.locatePath(name, Uses, s.dirs))
			isListed = true
		}
	}
	switch {
	case !p.Known:
		p.Program = shortened(displayText(name.text))
		p.UndecidedReason = "which program runs is known only when it does: " + p.Program
		a.addEffects(&p, "", program{}, args, s, c)
	case slices.Contains(shells, key):
		a.walkShell(&p, args, s, c)
		return
	case !isListed:
		p.UndecidedReason, p.unlisted = "mini does not know what "+p.Program+" does", true
		a.addEffects(&p, key, program{}, args, s, c)
		if key == "eval" && !slices.ContainsFunc(p.Args, func(w Word) bool { return !w.Known }) {
			inner := c.withWrapper(key)
			inner.topLevel = false
			a.walkScript(joinTexts(args), s.clone(), inner)
		}
	case key == "find":
		a.walkFind(&p, spec, args, s, c)
		return
	case spec.has("subcommands"):
		a.walkSubcommand(&p, key, spec, args, s, c)
		return
	case spec.has("wraps"):
		a.walkWrapped(&p, key, spec, args, s, c)
		return
	default:
		a.addEffects(&p, key, spec, args, s, c)
	}
	a.addPart(p)
}

// joinTexts joins the texts of values by spaces.
func joinTexts(values []value) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, v.text)
	}
	return strings.Join(texts, " ")
}

// systemDirs are the directories of installed programs.
var systemDirs = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

// walkSubcommand analyzes a program such as git, whose first operand is a
// command with a line of its own in the table.
func (a *analyzer) walkSubcommand(p *Part, key string, spec program, args []value, s *scope, c cmdContext) {
	g := a.parseArguments(p, spec, args, s, true)
	if key == "git" && slices.ContainsFunc(g.values["c"], func(v value) bool { return v.kind != known || !harmlessGitSettings().MatchString(v.text) }) {
		p.UndecidedReason = "a setting of git's may run something"
	}
	g.checkRelative(p, g.operands)
	key, spec, rest, ok := findSubcommand(key, g.operands)
	if !ok {
		p.UndecidedReason = "mini does not know what this command of " + p.Program + " does"
	}
	if spec.has("wraps") {
		a.walkWrapped(p, key, spec, rest, s, c)
		return
	}
	a.addEffects(p, key, spec, rest, s, c)
	a.addPart(*p)
}

// walkWrapped analyzes a program such as env or xargs and the program that it
// runs.
func (a *analyzer) walkWrapped(p *Part, key string, spec program, args []value, s *scope, c cmdContext) {
	g := a.parseArguments(p, spec, args, s, true)
	sudo := spec.answer("sudo", g)
	inner, rest := c.withWrapper(p.Program), g.operands
	for (key == "env" || key == "sudo") && len(rest) > 0 {
		name, text, ok := strings.Cut(rest[0].text, "=")
		if !ok {
			break
		}
		a.checkVariable(name, value{text: text, kind: rest[0].kind}, true, s, inner)
		rest = rest[1:]
	}
	if spec.has("skip") && len(rest) > 0 {
		rest = rest[1:]
	}
	runs := len(rest) > 0 && (key != "command" || !g.hasFlag("v", "V"))
	if !runs {
		p.listing = key == "xargs" && c.names
	}
	if !runs || p.UndecidedReason != "" || len(p.Paths) > 0 {
		p.Sudo = sudo
		a.addPart(*p)
	}
	if !runs {
		return
	}
	from := len(a.parts)
	if key == "xargs" {
		argument := value{text: "...", kind: unknown}
		if c.names {
			argument = value{text: placeholder, kind: workspaceName}
		}
		mark := ""
		for _, v := range g.values["I"] {
			mark = v.text
		}
		inner.script, inner.names = nil, false
		a.walkWithArgument(rest, mark, argument, s, inner)
	} else {
		a.walkProgram(rest, s, inner)
	}
	for i := from; i < len(a.parts); i++ {
		a.parts[i].Sudo = a.parts[i].Sudo.Or(sudo)
	}
}

// walkWithArgument analyzes a program that xargs or find -exec runs with
// further arguments. The value argument stands for them: it replaces mark, or
// is appended if mark is empty. If the program removes them, that is a
// recursive delete.
func (a *analyzer) walkWithArgument(words []value, mark string, argument value, s *scope, c cmdContext) {
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
	from := len(a.parts)
	a.walkProgram(all, s, c)
	for i := from; i < len(a.parts); i++ {
		if p := &a.parts[i]; slices.Contains(removers, p.Program) {
			p.RecursiveDelete = Yes
		}
	}
}

// removers are the programs that remove their operands, or their contents.
var removers = []string{"rm", "unlink", "shred", "rmdir", "truncate"}

// shells are the programs that run a script in bash's language, or a part of it.
var shells = []string{"bash", "sh", "dash"}

// shellOptions matches the options of shells that change nothing of the
// analysis.
var shellOptions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(-[eluxc]+|\+[eux]+|-[eux]*o|--(login|norc|noprofile|posix))$`)
})

// shellSettings are the values of set -o that change nothing of the analysis.
var shellSettings = []string{"pipefail", "errexit", "nounset", "xtrace"}

// walkShell analyzes the script of a shell: the argument of -c or a
// here-document. Script files are not read.
func (a *analyzer) walkShell(p *Part, args []value, s *scope, c cmdContext) {
	hasScript, isKnown := false, true
	for len(args) > 0 && args[0].kind == known && len(args[0].text) > 1 && strings.IndexByte("-+", args[0].text[0]) >= 0 {
		text := args[0].text
		isKnown = isKnown && shellOptions().MatchString(text)
		hasScript = hasScript || text[0] == '-' && text[1] != '-' && strings.Contains(text, "c")
		args = args[1:]
		if strings.HasSuffix(text, "o") && len(args) > 0 {
			isKnown = isKnown && slices.Contains(shellSettings, args[0].text)
			args = args[1:]
		}
	}
	inner := c.withWrapper(p.Program)
	inner.topLevel, inner.script, inner.names = false, nil, false
	child := &scope{dirs: slices.Clone(s.dirs), names: map[string]bool{}}
	switch {
	case isKnown && hasScript && len(args) > 0 && args[0].kind == known:
		a.walkScript(args[0].text, child, inner)
		return
	case isKnown && !hasScript && len(args) == 0 && c.script != nil:
		a.walkScript(*c.script, child, inner)
		return
	case isKnown && !hasScript && len(args) > 0 && args[0].isLiteral() && !strings.HasPrefix(args[0].text, "/dev/"):
		p.Paths = append(p.Paths, a.locatePath(args[0], Reads, s.dirs))
		a.addOperandPaths(p, program{}, arguments{operands: args[1:]}, s)
	default:
		p.UndecidedReason = "the script that " + p.Program + " runs is known only when it does"
	}
	a.addPart(*p)
}

// walkFind analyzes find, which may delete files and run programs.
func (a *analyzer) walkFind(p *Part, spec program, args []value, s *scope, c cmdContext) {
	var rest []value // without the commands of -exec
	var commands [][]value
	for i := 0; i < len(args); i++ {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, args[i].text) {
			rest = append(rest, args[i])
			continue
		}
		from := i + 1
		for i++; i < len(args) && args[i].text != ";" && (args[i].text != "+" || args[i-1].text != "{}"); i++ {
			continue
		}
		commands = append(commands, args[from:min(i, len(args))])
	}
	a.addEffects(p, "find", spec, rest, s, c)
	found := value{text: placeholder, kind: workspaceName}
	for _, at := range p.Paths {
		if at.Location != Inside || at.git {
			found, p.listing = value{text: at.Text}, false
		}
	}
	p.listing = p.listing && len(commands) == 0
	a.addPart(*p)
	c.script, c.names = nil, false
	for _, words := range commands {
		a.walkWithArgument(words, "{}", found, s, c.withWrapper(p.Program))
	}
}
