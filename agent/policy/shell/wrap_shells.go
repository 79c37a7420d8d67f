package shell

import (
	"strings"
)

// shellText is a word that a shell reads as a script.
func (r *reader) shellText(p *Part, v value, s *scope, c *context) {
	if v.kind != known {
		r.add(unclear(p, c, "the script that "+p.Program+" runs is known only when it does"))
		return
	}
	r.nested(v.text, s, c)
}

func readShell(r *reader, p *Part, args []value, s *scope, c *context) bool {
	inner := c.within(p.Program)
	inner.stdin, inner.input = nothing, ""
	given, fromInput := false, false
	i := 0
	for ; i < len(args); i++ {
		v := args[i]
		if v.kind != known {
			break
		}
		if len(v.text) < 2 || v.text[0] != '-' && v.text[0] != '+' {
			break
		}
		if strings.HasPrefix(v.text, "--") {
			if v.text == "--rcfile" || v.text == "--init-file" {
				r.add(unclear(p, c, "it runs a file before all else"))
				i++
			}
			continue
		}
		given = given || v.text[0] == '-' && strings.Contains(v.text, "c")
		fromInput = fromInput || strings.Contains(v.text, "s")
		if strings.ContainsAny(v.text[len(v.text)-1:], "oO") {
			i++
		}
	}
	switch {
	case given && i < len(args):
		r.shellText(p, args[i], s, inner)
		return true
	case given:
		return false
	case i < len(args) && args[i].kind == unknown:
		r.add(unclear(p, c, "the script that "+p.Program+" runs is known only when it does"))
		return true
	case i < len(args) && strings.HasPrefix(args[i].text, "/dev/fd/"), i < len(args) && args[i].text == "/dev/stdin":
		r.add(unclear(p, c, "the script that "+p.Program+" runs is known only when it does"))
		return true
	case i < len(args) && !fromInput && args[i].text != "-":
		p.Paths = append(p.Paths, r.located(args[i], Reads, s.dirs))
		r.effectsOf(p, program{}, args[i+1:], s, c)
		r.add(*p)
		return true
	case c.stdin == script:
		r.nested(c.input, s, inner)
		return true
	case c.stdin != nothing:
		r.add(unclear(p, c, "it runs what comes in on its input, which is known only then"))
		return true
	}
	return false
}

// readSource is about scripts that come in on the input; others are files.
func readSource(r *reader, p *Part, args []value, s *scope, c *context) bool {
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].kind == known && !streamed.MatchString(args[0].text) {
		return false
	}
	if c.stdin == script && args[0].kind == known && args[0].text != "/dev/fd/63" {
		r.nested(c.input, s, c.within(p.Program))
		return true
	}
	r.add(unclear(p, c, "the script that it reads is known only when it runs"))
	return true
}

func readEval(r *reader, p *Part, args []value, s *scope, c *context) bool {
	var words []string
	for _, v := range args {
		if !v.literal() {
			r.add(unclear(p, c, "the script that eval runs is known only when it does"))
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

func readTrap(r *reader, p *Part, args []value, s *scope, c *context) bool {
	if len(args) < 2 || strings.HasPrefix(args[0].text, "-") && args[0].text != "--" {
		return false
	}
	if args[0].text == "--" {
		args = args[1:]
	}
	r.shellText(p, args[0], s, c.within(p.Program))
	return true
}

func readAlias(r *reader, p *Part, args []value, s *scope, c *context) bool {
	read := false
	for _, v := range args {
		name, text, has := strings.Cut(v.text, "=")
		if has && v.kind == known {
			r.work.aliases[name] = text
		}
		if has || v.kind != known {
			r.shellText(p, value{text: text, kind: v.kind}, s, c.within(p.Program))
			read = true
		}
	}
	return read
}
