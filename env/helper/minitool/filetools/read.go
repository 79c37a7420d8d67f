package filetools

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"unicode/utf8"
)

// Limits of the output of read.
const (
	defaultLines = 2000
	maxLineChars = 2000
)

// sniffSize is the number of bytes examined to detect binary files.
const sniffSize = 8000

// read runs the tool read, which prints lines of a file.
func read(args []string, s Streams) error {
	a, err := parse(args, map[string]bool{"--offset": true, "--limit": true})
	if err != nil {
		return err
	}
	name, err := a.file(1)
	if err != nil {
		return err
	}
	first, err := a.number("--offset", 1)
	if err != nil {
		return err
	}
	limit, err := a.number("--limit", defaultLines)
	if err != nil {
		return err
	}
	text, err := readText(name)
	if err != nil {
		return err
	}
	size := int64(len(text))
	lines := bytes.Count(text, []byte("\n"))
	if size > 0 && text[size-1] != '\n' {
		lines++
	}
	switch {
	case size == 0 && first == 1:
		_, err := fmt.Fprintf(s.Out, "%s is empty (0 lines, 0 bytes)\n", quoted(name))
		return err
	case first > lines:
		return fmt.Errorf("%s has %s; there is no line %d", quoted(name), counted(lines, "line"), first)
	}
	last := lines
	if limit <= lines-first {
		last = first + limit - 1
	}
	shown, note := "all of them", ""
	switch {
	case first == last && lines > 1:
		shown = fmt.Sprintf("shown is %d", first)
	case first > 1 || last < lines:
		shown = fmt.Sprintf("shown are %d to %d", first, last)
	}
	lineEnd := "\n"
	if onlyCRLF(text) {
		lineEnd, note = "\r\n", "; lines end in CRLF"
	}
	out := bufio.NewWriterSize(s.Out, 64<<10)
	_, _ = fmt.Fprintf(out, "%s: %s, %s; %s%s\n", quoted(name), counted(lines, "line"), counted(size, "byte"), shown, note) // Flush returns the error
	printLines(out, text, first, last, lineEnd)
	return out.Flush()
}

// readText returns the content of a text file.
func readText(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	if err := checkRegular(name, info); err != nil { // before it is opened, because opening a pipe may block
		return nil, err
	}
	text, err := readTarget(target{name: name, path: name, info: info}, "read it with sed -n")
	if err != nil {
		return nil, err
	}
	return text, checkText(name, text[:min(len(text), sniffSize)], info.Size())
}

// checkText returns an error if a file that begins with head is binary, by the rule of
// git: it contains a NUL byte.
func checkText(name string, head []byte, size int64) error {
	if bytes.IndexByte(head, 0) < 0 {
		return nil
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return fmt.Errorf("%s is text in UTF-16 (%s); iconv -f UTF-16 -t UTF-8 prints it", quoted(name), counted(size, "byte"))
	}
	return fmt.Errorf("%s is binary (%s); xxd or strings shows some of it", quoted(name), counted(size, "byte"))
}

// printLines prints lines with their numbers, padded to the width of the last number.
func printLines(w *bufio.Writer, text []byte, first, last int, lineEnd string) {
	width := len(strconv.Itoa(last))
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n < first {
			continue
		}
		if n > last {
			return
		}
		line = bytes.TrimSuffix(line, []byte(lineEnd))
		shown := firstChars(line, maxLineChars)
		_, _ = fmt.Fprintf(w, "%*d\t%s", width, n, shown) // Flush returns the error
		if rest := utf8.RuneCount(line[len(shown):]); rest > 0 {
			_, _ = fmt.Fprintf(w, " [line cut: %s more]", counted(rest, "character"))
		}
		_ = w.WriteByte('\n')
	}
}

// firstChars returns the first n characters of a line.
func firstChars(line []byte, n int) []byte {
	i := 0
	for ; n > 0 && i < len(line); n-- {
		_, size := utf8.DecodeRune(line[i:])
		i += size
	}
	return line[:i]
}
