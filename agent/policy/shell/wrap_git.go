package shell

import (
	"path"
	"strings"
)

// readGit is about the programs that git runs; its own effects are read with
// those of others.
func readGit(r *reader, p *Part, args []value, s *scope, c *context) bool {
	inner := c.within("git")
	rest := r.options(args, "cC", []string{"git-dir", "work-tree", "namespace", "exec-path", "config-env", "super-prefix"}, func(name string, v value) {
		if name == "exec-path" && v.text != "" {
			r.add(unclear(p, inner, "it changes where git finds its programs"))
		}
		if name != "c" && name != "config-env" {
			return
		}
		key, text, _ := strings.Cut(v.text, "=")
		switch {
		case v.kind != known, name == "config-env" && runningKeys.MatchString(key):
			r.add(unclear(p, inner, "a setting of git's is known only when it runs"))
		case strings.HasPrefix(strings.ToLower(key), "include"):
			p.Paths = append(p.Paths, r.located(value{text: text}, Reads, s.dirs))
			r.add(unclear(p, inner, "it reads more settings of git's, some of which are run"))
		case strings.EqualFold(key, "core.hooksPath"):
			p.Paths = append(p.Paths, r.located(value{text: text}, Reads, s.dirs))
			r.add(unclear(p, inner, "it changes which hooks git runs"))
		case runningKeys.MatchString(key) && strings.HasPrefix(strings.ToLower(key), "alias.") && !strings.HasPrefix(text, "!"):
			r.nested("git "+text, s, c)
		case runningKeys.MatchString(key):
			r.nested(strings.TrimPrefix(text, "!"), s, inner)
		}
	})
	if rest == nil {
		r.add(unclear(p, c, "what git does is known only when it runs"))
		return true
	}
	for i, v := range rest {
		switch t := v.text; {
		case i == 0:
		case rest[0].text == "bisect" && t == "run" && i == 1:
			r.run(rest[2:], s, inner)
		case rest[0].text == "submodule" && t == "foreach":
			r.shellWords(p, r.options(rest[i+1:], "", nil, nil), s, c)
		case rest[0].text == "rebase" && (t == "-x" || t == "--exec") && i+1 < len(rest):
			r.shellText(p, rest[i+1], s, inner)
		case rest[0].text == "rebase" && gitRuns.MatchString(t),
			rest[0].text == "difftool" && gitRuns.MatchString(t),
			rest[0].text == "grep" && (strings.HasPrefix(t, "-O") || strings.HasPrefix(t, "--open-files-in-pager=")):
			_, text, _ := strings.Cut(t, "=")
			if !strings.HasPrefix(t, "--") {
				text = t[2:]
			}
			r.shellText(p, value{text: text, kind: v.kind}, s, inner)
		case rest[0].text == "difftool" && (t == "-x" || t == "--extcmd") && i+1 < len(rest):
			r.shellText(p, rest[i+1], s, inner)
		case rest[0].text == "filter-branch" && strings.HasSuffix(t, "-filter") && i+1 < len(rest):
			r.shellText(p, rest[i+1], s, inner)
		}
	}
	return false
}

// baseOf is a name without the version at its end: python3.11 is python.
func baseOf(name string) string {
	name = path.Base(name)
	if _, ok := programs[name]; ok {
		return name
	}
	return strings.TrimRight(strings.TrimRight(name, "0123456789."), "-")
}
