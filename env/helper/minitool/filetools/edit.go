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
	hasEither, hasBoth := a.has("--old") || a.has("--new"), a.has("--old") && a.has("--new")
	switch {
	case len(a.args) == 2 && (a.args[1] != "-" || a.afterDashes > 0):
		return nil, usagef("%s is one argument too many; the texts go behind --old and --new", quoted(clipped(a.args[1])))
	case len(a.args) == 2 && hasEither:
		return nil, usagef("it is either --old and --new, or blocks on standard input")
	case hasEither && !hasBoth:
		return nil, usagef("--old and --new go together; an empty --new takes the old text out")
	case hasBoth:
		c := change{old: []byte(a.values["--old"]), new: []byte(a.values["--new"])}
		return []change{c}, c.validate()
	case len(a.args) < 2 && !s.hasInput():
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
	crlf  bool  // line ends of a change were converted to CRLF
}

func (e editResult) String() string {
	s := counted(len(e.lines), "replacement") + " at line" + map[bool]string{true: "s"}[len(e.lines) > 1] + " " + list(e.lines)
	if e.crlf {
		s += "; line ends are CRLF as in the rest of the file"
	}
	return s
}

// apply applies all changes, in order, or none. Unless all is true, each old text must
// match exactly once.
func apply(text []byte, changes []change, all bool) (editResult, error) {
	e := editResult{text: text}
	for _, c := range changes {
		if onlyCRLF(text) {
			var oldChanged, newChanged bool
			c.old, oldChanged = toCRLF(c.old)
			c.new, newChanged = toCRLF(c.new)
			e.crlf = e.crlf || oldChanged || newChanged
		}
		offsets := c.find(e.text, all)
		if len(offsets) == 0 && c.mayMatchLastLine(e.text) {
			trimmed := change{old: withoutEnd(c.old), new: withoutEnd(c.new), lines: true}
			if offsets = trimmed.find(e.text, all); len(offsets) > 0 {
				c.old, c.new = trimmed.old, trimmed.new
			}
		}
		switch {
		case len(offsets) == 0:
			return e, c.notFoundError(e.text)
		case len(offsets) > 1 && !all:
			return e, fmt.Errorf("%sthe old text is there %s, at lines %s; take more of the text around the one that is meant, or --all",
				c.errorPrefix(), times(len(offsets)), list(linesAt(e.text, offsets)))
		}
		e.replace(c, offsets)
	}
	return e, nil
}

// maxMatches is the maximum number of matches counted for a text that must match once.
const maxMatches = 1000

// find returns the offsets of the old text. It includes overlapping matches, which make
// the change ambiguous, unless all is true.
func (c change) find(text []byte, all bool) []int {
	if len(c.old) == 0 {
		return nil
	}
	var offsets []int
	for i := 0; all || len(offsets) < maxMatches; {
		j := bytes.Index(text[i:], c.old)
		if j < 0 {
			break
		}
		i += j
		switch {
		case c.lines && (i > 0 && text[i-1] != '\n' || !endsLine(text, i+len(c.old))):
			i++
		case all:
			offsets = append(offsets, i)
			i += len(c.old)
		default:
			offsets = append(offsets, i)
			i++
		}
	}
	return offsets
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

// mayMatchLastLine reports whether the change, without its last line end, might match
// the last line of a text that does not end with a line end.
func (c change) mayMatchLastLine(text []byte) bool {
	return c.lines && len(text) > 0 && text[len(text)-1] != '\n'
}

func withoutEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}

// replace replaces the old text at offsets, which must not overlap.
func (e *editResult) replace(c change, offsets []int) {
	growth := len(c.new) - len(c.old)
	text := make([]byte, 0, max(0, len(e.text)+growth*len(offsets)))
	from := 0
	var newOffsets []int
	for _, i := range offsets {
		text = append(text, e.text[from:i]...)
		newOffsets = append(newOffsets, len(text))
		text = append(text, c.new...)
		from = i + len(c.old)
	}
	e.text = append(text, e.text[from:]...)
	e.lines = append(e.lines, linesAt(e.text, newOffsets)...)
}

// linesAt returns the line numbers of offsets, which must be in ascending order.
func linesAt(text []byte, offsets []int) []int {
	lines := make([]int, len(offsets))
	n, from := 1, 0
	for k, i := range offsets {
		n += bytes.Count(text[from:i], []byte("\n"))
		lines[k], from = n, i
	}
	return lines
}

// onlyCRLF reports whether a text has line ends and all of them are CRLF.
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

// list formats the first 20 numbers, and the count of the others.
func list(numbers []int) string {
	const maxListed = 20
	var b strings.Builder
	for i, n := range numbers {
		if i == maxListed {
			b.WriteString(" and " + strconv.Itoa(len(numbers)-maxListed) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
