package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// edit replaces texts in a file.
func edit(args []string, s Streams) error {
	a, err := parse(args, map[string]bool{"--old": true, "--new": true, "--all": false})
	if err != nil {
		return err
	}
	name, err := a.file(2)
	if err != nil {
		return err
	}
	changes, err := a.changes(s)
	if err != nil {
		return err
	}
	t, err := aim(name)
	if err != nil {
		return err
	}
	if !t.exists() {
		return missing(name)
	}
	was, err := contentOf(t)
	if err != nil {
		return err
	}
	done, err := apply(was, changes, a.has("--all"))
	if err != nil {
		return fmt.Errorf("%s: %w", quoted(name), err)
	}
	if err := t.replace(done.text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "edited %s: %s%s\n", quoted(name), done, t.note())
	return err
}

// changes are those that the arguments, or standard input, ask for.
func (a arguments) changes(s Streams) ([]change, error) {
	given, both := a.has("--old") || a.has("--new"), a.has("--old") && a.has("--new")
	switch {
	case len(a.rest) == 2 && (a.rest[1] != "-" || a.plain > 0):
		return nil, usagef("%s is one argument too many; the texts go behind --old and --new", quoted(clipped(a.rest[1])))
	case len(a.rest) == 2 && given:
		return nil, usagef("it is either --old and --new, or blocks on standard input")
	case given && !both:
		return nil, usagef("--old and --new go together; an empty --new takes the old text out")
	case both:
		c := change{old: []byte(a.values["--old"]), new: []byte(a.values["--new"])}
		return []change{c}, c.check()
	case len(a.rest) < 2 && !s.offers():
		return nil, usagef("there is neither --old and --new nor a block on standard input")
	}
	text, err := s.input()
	if err != nil {
		return nil, err
	}
	return blocks(text)
}

// contentOf is all of a file.
func contentOf(t target) ([]byte, error) {
	if t.was.Size() > maxFile {
		return nil, fmt.Errorf("%s has more than %d MB; change it with sed", quoted(t.name), maxFile>>20)
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil, inTheWay(t.name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, inTheWay(t.name, err)
	}
	return b, nil
}

// change is one text and what is to stand in its place.
type change struct {
	old, new []byte
	lines    bool // of whole lines, each with its end
	block    int  // where it stands among several, from 1; 0 where it is alone
}

func (c change) check() error {
	switch {
	case len(c.old) == 0:
		return usagef("%sthe old text is empty; to make a file, use write", c.which())
	case bytes.Equal(c.old, c.new):
		return usagef("%sold and new text are the same", c.which())
	}
	return nil
}

// which begins what is said of a block.
func (c change) which() string {
	if c.block == 0 {
		return ""
	}
	return "block " + strconv.Itoa(c.block) + ": "
}

// edited is what changes have come to.
type edited struct {
	text  []byte
	lines []int // where the new texts begin, by the last text
	crlf  bool
}

func (e edited) String() string {
	s := counted(len(e.lines), "replacement") + " at line" + map[bool]string{true: "s"}[len(e.lines) > 1] + " " + list(e.lines)
	if e.crlf {
		s += "; line ends are CRLF as in the rest of the file"
	}
	return s
}

// apply makes all changes, one after the other, or none.
func apply(text []byte, changes []change, all bool) (edited, error) {
	e := edited{text: text}
	for _, c := range changes {
		if onlyCRLF(text) {
			var a, b bool
			c.old, a = toCRLF(c.old)
			c.new, b = toCRLF(c.new)
			e.crlf = e.crlf || a || b
		}
		at := c.find(e.text, all)
		if len(at) == 0 && c.openEnded(e.text) {
			short := change{old: withoutEnd(c.old), new: withoutEnd(c.new), lines: true}
			if at = short.find(e.text, all); len(at) > 0 {
				c.old, c.new = short.old, short.new
			}
		}
		switch {
		case len(at) == 0:
			return e, c.absent(e.text)
		case len(at) > 1 && !all:
			return e, fmt.Errorf("%sthe old text is there %s, at lines %s; take more of the text around the one that is meant, or --all",
				c.which(), times(len(at)), list(linesAt(e.text, at)))
		}
		e.replace(c, at)
	}
	return e, nil
}

// maxPlaces is how many are counted of what must be there once.
const maxPlaces = 1000

// find returns where the old text begins. Places that overlap are both found
// unless all are to be replaced: then it is not clear either which one is meant.
func (c change) find(text []byte, all bool) []int {
	if len(c.old) == 0 {
		return nil
	}
	var at []int
	for i := 0; all || len(at) < maxPlaces; {
		j := bytes.Index(text[i:], c.old)
		if j < 0 {
			break
		}
		i += j
		switch {
		case c.lines && (i > 0 && text[i-1] != '\n' || !endsLine(text, i+len(c.old))):
			i++
		case all:
			at = append(at, i)
			i += len(c.old)
		default:
			at = append(at, i)
			i++
		}
	}
	return at
}

func times(n int) string {
	if n == maxPlaces {
		return fmt.Sprintf("%d times or more", n)
	}
	return fmt.Sprintf("%d times", n)
}

// endsLine says that whole lines end at i.
func endsLine(text []byte, i int) bool {
	return text[i-1] == '\n' || i == len(text)
}

// openEnded says that the text ends without the line end that the last of whole
// lines has.
func (c change) openEnded(text []byte) bool {
	return c.lines && len(text) > 0 && text[len(text)-1] != '\n'
}

func withoutEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}

// replace puts the new text at places that do not overlap.
func (e *edited) replace(c change, at []int) {
	grown := len(c.new) - len(c.old)
	text := make([]byte, 0, max(0, len(e.text)+grown*len(at)))
	from := 0
	var begins []int
	for _, i := range at {
		text = append(text, e.text[from:i]...)
		begins = append(begins, len(text))
		text = append(text, c.new...)
		from = i + len(c.old)
	}
	e.text = append(text, e.text[from:]...)
	e.lines = append(e.lines, linesAt(e.text, begins)...)
}

// linesAt are the numbers of the lines in which places lie, which ascend.
func linesAt(text []byte, at []int) []int {
	lines := make([]int, len(at))
	n, from := 1, 0
	for k, i := range at {
		n += bytes.Count(text[from:i], []byte("\n"))
		lines[k], from = n, i
	}
	return lines
}

// onlyCRLF says that every line of a text ends so.
func onlyCRLF(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

// toCRLF makes every line end CRLF, and says whether that changed anything.
func toCRLF(b []byte) ([]byte, bool) {
	plain := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	full := bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n"))
	return full, len(full) != len(b)
}

// list names some numbers.
func list(numbers []int) string {
	const most = 20
	var b strings.Builder
	for i, n := range numbers {
		if i == most {
			b.WriteString(" and " + strconv.Itoa(len(numbers)-most) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
