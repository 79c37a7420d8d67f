package shell

import (
	"regexp"
	"slices"
	"strings"
)

// wrapper is a program that runs another one, which stands in its arguments.
type wrapper struct {
	// short and long are its options that take a value, others do not.
	short string
	long  []string
	// operands stand before the program that is run; assigns says that
	// NAME=VALUE may, too.
	operands int
	assigns  bool
	sudo     bool
}

// wrappers run the program behind their options. Those whose arguments have
// another form are in special.
var wrappers = map[string]wrapper{
	"sudo":             {short: "ugphCDRTUrtc", long: []string{"user", "group", "prompt", "host", "close-from", "chdir", "chroot", "role", "type", "command-timeout", "other-user"}, assigns: true, sudo: true},
	"doas":             {short: "uCa", sudo: true},
	"pkexec":           {long: []string{"user"}, sudo: true},
	"run0":             {short: "ugD", long: []string{"user", "group", "chdir"}, sudo: true},
	"nohup":            {},
	"setsid":           {},
	"time":             {short: "fo", long: []string{"format", "output"}},
	"timeout":          {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"gtimeout":         {short: "ks", long: []string{"kill-after", "signal"}, operands: 1},
	"nice":             {short: "n", long: []string{"adjustment"}},
	"ionice":           {short: "cnpPu", long: []string{"class", "classdata"}},
	"chrt":             {operands: 1},
	"taskset":          {operands: 1},
	"numactl":          {short: "NmipC"},
	"stdbuf":           {short: "ioe", long: []string{"input", "output", "error"}},
	"unbuffer":         {},
	"builtin":          {},
	"exec":             {short: "a"},
	"strace":           {short: "aeEIoOpPsSuUX"},
	"ltrace":           {short: "aAeDlnopsuxX"},
	"chroot":           {long: []string{"userspec", "groups"}, operands: 1},
	"unshare":          {short: "SGR"},
	"xvfb-run":         {short: "aefnpsw"},
	"caffeinate":       {short: "tw"},
	"busybox":          {},
	"setpriv":          {long: []string{"reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "pdeathsig"}},
	"prlimit":          {},
	"setarch":          {},
	"linux32":          {},
	"linux64":          {},
	"fakeroot":         {},
	"faketime":         {operands: 1},
	"valgrind":         {},
	"chronic":          {},
	"rlwrap":           {},
	"tini":             {},
	"dumb-init":        {},
	"ssh-agent":        {},
	"dbus-run-session": {},
	"gosu":             {operands: 1, sudo: true},
	"su-exec":          {operands: 1, sudo: true},
	"toybox":           {},
}

// special reads programs whose arguments have a form of their own. known is
// false for all others; done says that all there is to note was noted.
func (r *reader) special(p *Part, args []value, s *scope, c *context) (done, known bool) {
	var read func(*reader, *Part, []value, *scope, *context) bool
	switch p.Program {
	case "env":
		read = readEnv
	case "su", "runuser":
		read = readSu
	case "command":
		read = readCommand
	case "xargs", "gxargs":
		read = readXargs
	case "parallel":
		read = readParallel
	case "watch":
		read = readWatch
	case "flock":
		read = readFlock
	case "script":
		read = readScript
	case "find", "gfind":
		read = readFind
	case "fd", "fdfind":
		read = readFd
	case "bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "fish":
		read = readShell
	case "source", ".":
		read = readSource
	case "eval":
		read = readEval
	case "trap":
		read = readTrap
	case "alias":
		read = readAlias
	case "git":
		read = readGit
	case "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "bundle":
		read = readRunner
	default:
		return false, false
	}
	return read(r, p, args, s, c), true
}

// wrapped reads what a program is told to run; false where that is nothing.
func (r *reader) wrapped(p *Part, args []value, s *scope, c *context) bool {
	if done, known := r.special(p, args, s, c); known {
		return done
	}
	w, ok := wrappers[p.Program]
	if !ok {
		return false
	}
	from := len(r.parts)
	rest := r.options(args, w.short, w.long, nil)
	if rest == nil {
		r.add(unclear(p, c, "an option of "+p.Program+" is known only when it runs"))
		return true
	}
	inner := c.within(p.Program)
	for w.assigns && len(rest) > 0 && assignment.MatchString(rest[0].text) {
		r.environment(rest[0], s, inner)
		rest = rest[1:]
	}
	if len(rest) <= w.operands {
		if w.sudo {
			p.Sudo = Yes
		}
		return false
	}
	for _, v := range rest[:w.operands] {
		if p.Program == "chroot" {
			p.Paths = append(p.Paths, r.located(v, Uses, s.dirs))
			p.System = Yes
			r.add(*p)
		}
	}
	r.run(rest[w.operands:], s, inner)
	if w.sudo {
		for i := from; i < len(r.parts); i++ {
			r.parts[i].Sudo = Yes
		}
	}
	return true
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// environment notes NAME=VALUE among arguments.
func (r *reader) environment(v value, s *scope, c *context) {
	name, text, _ := strings.Cut(v.text, "=")
	r.setting(name, value{text: text, kind: v.kind}, s, c)
}

// unclear is a part whose program is known, and what that runs is not.
func unclear(p *Part, c *context, why string) Part {
	u := undecided(c, p.Program, "%s", why)
	u.Known, u.Args, u.Paths, u.dirs, u.Sudo = true, p.Args, p.Paths, p.dirs, u.Sudo.Or(p.Sudo)
	return u
}

// options skips the options before the first operand. each, where it is given,
// is called with every option that has a value. nil means that a word there is
// known only when the command runs.
func (r *reader) options(args []value, short string, long []string, each func(name string, v value)) []value {
	tell := func(name string, v value) {
		if each != nil {
			each(name, v)
		}
	}
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.kind == unknown:
			return nil
		case v.text == "--":
			return append([]value{}, args[i+1:]...)
		case !strings.HasPrefix(v.text, "-") || v.text == "-":
			return append([]value{}, args[i:]...)
		case strings.HasPrefix(v.text, "--"):
			name, text, has := strings.Cut(v.text[2:], "=")
			if at := slices.IndexFunc(long, func(l string) bool { return strings.HasPrefix(l, name) }); at >= 0 && !slices.Contains(long, name) {
				name = long[at] // they may be shortened
			}
			switch {
			case has:
				tell(name, value{text: text, kind: v.kind})
			case slices.Contains(long, name) && i+1 < len(args):
				i++
				tell(name, args[i])
			default:
				tell(name, value{})
			}
		default:
			letters := v.text[1:]
			for at := range len(letters) {
				name := letters[at : at+1]
				if !strings.Contains(short, name) {
					tell(name, value{})
					continue
				}
				if rest := letters[at+1:]; rest != "" {
					tell(name, value{text: rest, kind: v.kind})
				} else if i+1 < len(args) {
					i++
					tell(name, args[i])
				}
				break
			}
		}
	}
	return []value{}
}

func readEnv(r *reader, p *Part, args []value, s *scope, c *context) bool {
	inner := c.within("env")
	var split []value
	bad := false
	rest := r.options(args, "uCSP", []string{"unset", "chdir", "split-string"}, func(name string, v value) {
		switch name {
		case "u", "unset":
			if v.text == "PATH" {
				r.setting(v.text, value{kind: unknown}, s, inner)
			}
		case "C", "chdir":
			p.Paths = append(p.Paths, r.located(v, Reads, s.dirs))
			s = s.clone()
			s.dirs = nil
			if v.kind == known && p.Paths[len(p.Paths)-1].Where != Unknown {
				s.dirs = []string{p.Paths[len(p.Paths)-1].Text}
			}
		case "S", "split-string":
			bad = bad || v.kind != known || strings.ContainsAny(v.text, "\\$'\"")
			for _, word := range strings.Fields(v.text) {
				split = append(split, value{text: word})
			}
		}
	})
	if rest == nil || bad {
		r.add(unclear(p, c, "what env runs is known only when it does"))
		return true
	}
	rest = append(split, rest...)
	for len(rest) > 0 && (rest[0].text == "-" || assignment.MatchString(rest[0].text)) {
		if rest[0].text != "-" {
			r.environment(rest[0], s, inner)
		}
		rest = rest[1:]
	}
	if len(p.Paths) > 0 && len(rest) > 0 {
		r.add(*p)
	}
	if len(rest) == 0 {
		return false
	}
	r.run(rest, s, inner)
	return true
}

func readCommand(r *reader, p *Part, args []value, s *scope, c *context) bool {
	asks := false
	rest := r.options(args, "", nil, func(name string, _ value) { asks = asks || name == "v" || name == "V" })
	switch {
	case rest == nil:
		r.add(unclear(p, c, "what command runs is known only when it does"))
		return true
	case asks || len(rest) == 0:
		return false
	}
	r.run(rest, s, c.within(p.Program))
	return true
}

func readSu(r *reader, p *Part, args []value, s *scope, c *context) bool {
	p.Sudo = Yes
	from := len(r.parts)
	rest := args
	for i, v := range args {
		if v.literal() && (v.text == "-c" || v.text == "--command") && i+1 < len(args) {
			r.shellText(p, args[i+1], s, c.within(p.Program))
			rest = nil
		}
		if v.text == "--" && rest != nil && p.Program == "runuser" {
			r.run(args[i+1:], s, c.within(p.Program))
			rest = nil
		}
	}
	for i := from; i < len(r.parts); i++ {
		r.parts[i].Sudo = Yes
	}
	return rest == nil && len(r.parts) > from
}

// streamed are names of what comes in, which are no files.
var streamed = regexp.MustCompile(`^/dev/(stdin|fd/)|^/proc/[^/]+/fd/`)

var removers = []string{"rm", "unlink", "shred", "rmdir"}

// runningKeys are settings of git whose values it runs.
var runningKeys = regexp.MustCompile(`(?i)^(include(if\..*)?\.path$|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath)|pager\..*|sequence\.editor|diff\.external|diff\..*\.(command|textconv)|alias\..*|credential\.helper|merge\..*\.driver|filter\..*|difftool\..*|mergetool\..*|gpg\.program)$`)

// gitRuns are options with a script of their own.
var gitRuns = regexp.MustCompile(`^(-x.|--(exec|extcmd)=)`)
