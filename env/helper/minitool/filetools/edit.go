package filetools

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// edit runs the tool edit, which replaces text in a file.
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
	t, err := resolveTarget(name)
	if err != nil {
		return err
	}
	if !t.exists() {
		return notFound(name)
	}
	old, err := readTarget(t, "change it with sed")
	if err != nil {
		return err
	}
	result, err := apply(old, changes, a.has("--all"))
	if err != nil {
		return fmt.Errorf("%s: %w", quoted(name), err)
	}
	if err := t.replace(result.text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "edited %s: %s%s\n", quoted(name), result, t.note())
	return err
}

// changes returns the changes given by the arguments or on standard input.
func (a arguments) changes(s Streams) ([]change, error) {
	given, both := a.has("--old") || a.has("--new"), a.has("--old") && a.has("--new")
	switch {
	case len(a.rest) == 2 && (a.rest[1] != "-" || a.afterDashes > 0):
		return nil, usagef("%s is one argument too many; the texts go behind --old and --new", quoted(clipped(a.rest[1])))
	case len(a.rest) == 2 && given:
		return nil, usagef("it is either --old and --new, or blocks on standard input")
	case given && !both:
		return nil, usagef("--old and --new go together; an empty --new takes the old text out")
	case both:
		c := change{old: []byte(a.values["--old"]), new: []byte(a.values["--new"])}
		return []change{c}, c.validate()
	case len(a.rest) < 2 && !s.hasInput():
		return nil, usagef("there is neither --old and --new nor a block on standard input")
	}
	text, err := s.readInput()
	if err != nil {
		return nil, err
	}
	return parseBlocks(text)
}

// readTarget returns the content of a file. hint tells the caller what to do if the
// file is too large.
func readTarget(t target, hint string) ([]byte, error) {
	if t.info.Size() > maxFile {
		return nil, fmt.Errorf("%s has more than %d MB; %s", quoted(t.name), maxFile>>20, hint)
	}
	f, err := os.Open(t.path)
	if err != nil {
		return nil, fileError(t.name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fileError(t.name, err)
	}
	return b, nil
}

// change is the replacement of one text by another.
type change struct {
	old, new []byte
	lines    bool // the texts are whole lines with line ends
	block    int  // number of the block, from 1; 0 if it is the only one
}

func (c change) validate() error {
	switch {
	case len(c.old) == 0:
		return usagef("%sthe old text is empty; to make a file, use write", c.errorPrefix())
	case bytes.Equal(c.old, c.new):
		return usagef("%sold and new text are the same", c.errorPrefix())
	}
	return nil
}

// errorPrefix returns the beginning of an error message about a block.
func (c change) errorPrefix() string {
	if c.block == 0 {
		return ""
	}
	return "block " + strconv.Itoa(c.block) + ": "
}

// editResult is the result of applying changes.
type editResult struct {
	text  []byte
	lines []int // the lines at which the new texts begin
	crlf  bool  // line ends were converted to CRLF
}

func (e editResult) String() string {
	s := counted(len(e.lines), "replacement") + " at line" + map[bool]string{true: "s"}[len(e.lines) > 1] + " " + list(e.lines)
	if e.crlf {
		s += "; line ends are CRLF as in the rest of the file"
	}
	return s
}

// apply applies all changes, in order, or none.
func apply(text []byte, changes []change, all bool) (editResult, error) {
	e := editResult{text: text}
	for _, c := range changes {
		if onlyCRLF(text) {
			var oldChanged, newChanged bool
			c.old, oldChanged = toCRLF(c.old)
			c.new, newChanged = toCRLF(c.new)
			e.crlf = e.crlf || oldChanged || newChanged
		}
		at := c.find(e.text, all)
		if len(at) == 0 && c.mayMatchLastLine(e.text) {
			short := change{old: withoutEnd(c.old), new: withoutEnd(c.new), lines: true}
			if at = short.find(e.text, all); len(at) > 0 {
				c.old, c.new = short.old, short.new
			}
		}
		switch {
		case len(at) == 0:
			return e, c.notFoundError(e.text)
		case len(at) > 1 && !all:
			return e, fmt.Errorf("%sthe old text is there %s, at lines %s; take more of the text around the one that is meant, or --all",
				c.errorPrefix(), times(len(at)), list(linesAt(e.text, at)))
		}
		e.replace(c, at)
	}
	return e, nil
}

// maxMatches is the maximum number of matches counted for a text that must match once.
const maxMatches = 1000

// find returns the offsets of the old text. Overlapping matches count, because the
// intended one is ambiguous, unless all matches are to be replaced.
func (c change) find(text []byte, all bool) []int {
	if len(c.old) == 0 {
		return nil
	}
	var at []int
	for i := 0; all || len(at) < maxMatches; {
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
	if n == maxMatches {
		return fmt.Sprintf("%d times or more", n)
	}
	return fmt.Sprintf("%d times", n)
}

// endsLine reports whether a line ends at i.
func endsLine(text []byte, i int) bool {
	return text[i-1] == '\n' || i == len(text)
}

// mayMatchLastLine reports whether the change might match the last line of the text
// without the line end, because the text has none.
func (c change) mayMatchLastLine(text []byte) bool {
	return c.lines && len(text) > 0 && text[len(text)-1] != '\n'
}

func withoutEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}

// replace replaces the old text at offsets that do not overlap.
func (e *editResult) replace(c change, at []int) {
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

// linesAt returns the line numbers of offsets, which must be in ascending order.
func linesAt(text []byte, at []int) []int {
	lines := make([]int, len(at))
	n, from := 1, 0
	for k, i := range at {
		n += bytes.Count(text[from:i], []byte("\n"))
		lines[k], from = n, i
	}
	return lines
}

// onlyCRLF reports whether all line ends of a text are CRLF.
func onlyCRLF(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

// toCRLF converts all line ends to CRLF, and reports whether that changed the text.
func toCRLF(b []byte) ([]byte, bool) {
	plain := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	full := bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n"))
	return full, len(full) != len(b)
}

// list formats numbers, the first 20 of them.
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
