package shell

import (
	"strings"
)

// readFind is about find, which deletes, writes and runs.
func readFind(r *reader, p *Part, args []value, s *scope, c *context) bool {
	var roots []value
	i := 0
	for ; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-H" || t == "-L" || t == "-P" || strings.HasPrefix(t, "-O"):
			continue
		case t == "-D":
			i++
			continue
		case !strings.HasPrefix(t, "-") && t != "(" && t != "!":
			roots = append(roots, args[i])
			continue
		}
		break
	}
	if len(roots) == 0 {
		roots = []value{{text: "."}}
	}
	found := value{text: placeholder, kind: plain}
	mode := Reads
	p.listing = true
	var runs [][]value
	for ; i < len(args); i++ {
		switch t := args[i].text; {
		case args[i].kind == unknown:
			continue // a pattern, most likely; an action has no quotes around it
		case t == "-files0-from":
			roots = append(roots, value{text: "what -files0-from names", kind: unknown})
		case t == "-delete":
			mode, p.RecursiveDelete = Writes, Yes
		case t == "-fprint" || t == "-fprint0" || t == "-fls" || t == "-fprintf":
			if i+1 < len(args) {
				p.Paths = append(p.Paths, r.located(args[i+1], Writes, s.dirs))
			}
			p.listing = false
		case t == "-printf":
			p.listing = false
		case t == "-newer" || t == "-samefile":
			if i++; i < len(args) {
				p.Paths = append(p.Paths, r.located(args[i], Reads, s.dirs))
			}
		case t == "-exec" || t == "-execdir" || t == "-ok" || t == "-okdir":
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
			found, p.listing = value{text: root.text, kind: root.kind}, false
		}
	}
	p.listing = p.listing && mode == Reads
	r.add(*p)
	inner := c.within(p.Program)
	for _, words := range runs {
		r.handed(p.bare(), words, "{}", found, s, inner, c)
	}
	return true
}

// bare is the part without its paths, which were noted.
func (p *Part) bare() *Part {
	q := *p
	q.Paths = nil
	return &q
}

func readFd(r *reader, p *Part, args []value, s *scope, c *context) bool {
	for i, v := range args {
		if t := v.text; t == "-x" || t == "-X" || t == "--exec" || t == "--exec-batch" {
			q := *p
			r.effects(&q, args[:i], s, c)
			q.listing = false
			r.add(q)
			return r.handed(p.bare(), append([]value{}, args[i+1:]...), "", value{text: placeholder, kind: plain}, s, c.within(p.Program), c)
		}
	}
	return false
}
