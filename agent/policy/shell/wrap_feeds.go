package shell

import (
	"slices"
	"strings"
)

// more stands for arguments that come from somewhere else.
func more(from feed) value {
	if from == listed {
		return value{text: placeholder, kind: plain}
	}
	return value{text: "...", kind: unknown}
}

func readXargs(r *reader, p *Part, args []value, s *scope, c *context) bool {
	replace, file := "", false
	rest := r.options(args, "aEdILnPs", []string{"arg-file", "delimiter", "replace", "max-args", "max-procs", "max-chars", "process-slot-var"}, func(name string, v value) {
		switch name {
		case "I", "replace", "i":
			if replace = v.text; replace == "" {
				replace = "{}"
			}
		case "a", "arg-file":
			file = true
			p.Paths = append(p.Paths, r.located(v, Reads, s.dirs))
		}
	})
	from := c.stdin
	if file {
		from = something
	}
	inner := c.within(p.Program)
	inner.stdin, inner.input = nothing, ""
	return r.handed(p, rest, replace, more(from), s, inner, c)
}

// handed runs a program with arguments from somewhere else in the place of a
// mark, or behind its own. rm of what was found is a deletion of many.
func (r *reader) handed(p *Part, rest []value, mark string, v value, s *scope, inner, c *context) bool {
	switch {
	case rest == nil:
		r.add(unclear(p, c, "what "+p.Program+" runs is known only when it does"))
		return true
	case len(rest) == 0:
		p.listing = v.kind == plain
		return false
	}
	var words []value
	for _, w := range rest {
		if mark != "" && strings.Contains(w.text, mark) {
			w = value{text: strings.ReplaceAll(w.text, mark, v.text), kind: max(w.kind, v.kind)}
		}
		words = append(words, w)
	}
	if mark == "" {
		words = append(words, v)
	}
	if len(p.Paths) > 0 {
		r.add(*p)
	}
	from := len(r.parts)
	r.run(words, s, inner)
	for i := from; i < len(r.parts); i++ {
		if q := &r.parts[i]; slices.Contains(removers, q.Program) {
			q.RecursiveDelete = Yes
		}
	}
	return true
}

func readParallel(r *reader, p *Part, args []value, s *scope, c *context) bool {
	// With ::: its arguments follow; without a program each line of its input is
	// a command.
	v, end := more(c.stdin), len(args)
	for i, a := range args {
		if strings.HasPrefix(a.text, ":::") {
			end, v = i, value{text: "...", kind: unknown}
			break
		}
	}
	rest := r.options(args[:end], "jaNnLsSIPdE", []string{"jobs", "arg-file", "max-args", "joblog", "results", "timeout", "delay", "retries", "colsep"}, nil)
	if len(rest) == 0 {
		r.add(unclear(p, c, "the commands that parallel runs are known only when it does"))
		return true
	}
	inner := c.within(p.Program)
	inner.stdin = nothing
	var words []string
	mark := ""
	for _, w := range rest {
		if !w.literal() {
			r.add(unclear(p, c, "the commands that parallel runs are known only when it does"))
			return true
		}
		if strings.Contains(w.text, "{}") {
			mark = "{}"
		}
		words = append(words, w.text)
	}
	if len(rest) == 1 && strings.ContainsAny(words[0], " ;|&<>$`'\"") {
		// a command of its own; what is put into it is a word there
		r.nested(strings.ReplaceAll(words[0], "{}", `"$MINI_ARGUMENT"`), s, inner)
		return true
	}
	return r.handed(p, rest, mark, v, s, inner, c)
}

func readWatch(r *reader, p *Part, args []value, s *scope, c *context) bool {
	rest := r.options(args, "nq", []string{"interval", "equexit"}, nil)
	return r.shellWords(p, rest, s, c)
}

// shellWords are joined to a script.
func (r *reader) shellWords(p *Part, words []value, s *scope, c *context) bool {
	if len(words) == 0 {
		if words == nil {
			r.add(unclear(p, c, "what "+p.Program+" runs is known only when it does"))
		}
		return words == nil
	}
	var texts []string
	for _, v := range words {
		if !v.literal() {
			r.add(unclear(p, c, "what "+p.Program+" runs is known only when it does"))
			return true
		}
		texts = append(texts, v.text)
	}
	r.nested(strings.Join(texts, " "), s, c.within(p.Program))
	return true
}

func readFlock(r *reader, p *Part, args []value, s *scope, c *context) bool {
	rest := r.options(args, "wE", []string{"timeout", "wait", "conflict-exit-code"}, nil)
	if len(rest) < 2 {
		return false
	}
	p.Paths = append(p.Paths, r.located(rest[0], Writes, s.dirs))
	r.add(*p)
	if rest[1].text == "-c" || rest[1].text == "--command" {
		return r.shellWords(p, rest[2:], s, c)
	}
	r.run(rest[1:], s, c.within(p.Program))
	return true
}

func readScript(r *reader, p *Part, args []value, s *scope, c *context) bool {
	for i, v := range args {
		if text, ok := strings.CutPrefix(v.text, "--command="); ok {
			r.shellText(p, value{text: text, kind: v.kind}, s, c.within(p.Program))
			return true
		}
		if v.kind == known && (v.text == "--command" || strings.HasPrefix(v.text, "-") && strings.HasSuffix(v.text, "c")) && i+1 < len(args) {
			r.shellText(p, args[i+1], s, c.within(p.Program))
			return true
		}
	}
	return false
}

// readRunner is about tools of projects that run a program in their
// environment: uv run, poetry run, conda run, bundle exec.
func readRunner(r *reader, p *Part, args []value, s *scope, c *context) bool {
	rest := r.options(args, "", nil, nil)
	if len(rest) < 2 || rest[0].text != "run" && rest[0].text != "exec" {
		return false
	}
	rest = r.options(rest[1:], "npmC", []string{"name", "prefix", "cwd", "with", "python", "project", "directory", "extra", "group", "env-file"}, func(name string, _ value) {
		if name == "with" {
			p.Network = Yes
		}
	})
	if rest == nil {
		r.add(unclear(p, c, "what "+p.Program+" runs is known only when it does"))
		return true
	}
	if len(rest) == 0 {
		return false
	}
	if p.Network != No {
		r.add(*p)
	}
	r.run(rest, s, c.within(p.Program))
	return true
}
