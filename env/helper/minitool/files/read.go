package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"
)

// Bounds of what read shows.
const (
	defaultLines = 2000
	maxLineChars = 2000
)

// sniffed is how many bytes are looked at to tell text from other content.
const sniffed = 8000

// read prints lines of a file. The file is read twice, since its length comes
// first, and no more of it is held than a buffer.
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
	f, err := openText(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	m, err := measure(f, int64(first))
	if err != nil {
		return inTheWay(name, err)
	}
	switch {
	case m.bytes == 0 && first == 1:
		_, err := fmt.Fprintf(s.Out, "%s is empty (0 lines, 0 bytes)\n", quoted(name))
		return err
	case int64(first) > m.lines:
		return fmt.Errorf("%s has %s; there is no line %d", quoted(name), counted(m.lines, "line"), first)
	}
	if _, err := f.Seek(m.start, io.SeekStart); err != nil {
		return inTheWay(name, err)
	}
	last := m.lines
	if int64(limit) <= m.lines-int64(first) {
		last = int64(first) + int64(limit) - 1
	}
	out := bufio.NewWriterSize(s.Out, 64<<10)
	header(out, name, m, int64(first), last)
	err = show(out, f, int64(first), last, m.crlf())
	return errors.Join(err, out.Flush())
}

// openText opens a file that holds text.
func openText(name string) (_ *os.File, err error) {
	info, err := os.Stat(name)
	if err == nil {
		err = special(name, info) // before it is opened, which may wait for somebody
		if err != nil {
			return nil, err
		}
	}
	f, err := os.Open(name) //nolint:gosec // whoever calls could open it, too
	if err != nil {
		return nil, inTheWay(name, err)
	}
	head := make([]byte, sniffed)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(inTheWay(name, err), f.Close())
	}
	if err := binary(name, head[:n], info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// binary says that what begins with head is no text, by the rule of git: there
// is a NUL byte.
func binary(name string, head []byte, size int64) error {
	if bytes.IndexByte(head, 0) < 0 {
		return nil
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return fmt.Errorf("%s is text in UTF-16 (%s); iconv -f UTF-16 -t UTF-8 prints it", quoted(name), counted(size, "byte"))
	}
	return fmt.Errorf("%s is binary (%s); xxd or strings shows some of it", quoted(name), counted(size, "byte"))
}

// measured is what there is in a file.
type measured struct {
	bytes, lines int64
	ends, crlfs  int64 // line ends, and those of them that are CRLF
	start        int64 // where the first line to show begins
}

// crlf says that all lines end so.
func (m measured) crlf() bool { return m.ends > 0 && m.ends == m.crlfs }

func measure(r io.Reader, first int64) (measured, error) {
	var m measured
	buf := make([]byte, 64<<10)
	last := byte('\n')
	for {
		n, err := r.Read(buf)
		piece := buf[:n]
		for i := 0; ; {
			j := bytes.IndexByte(piece[i:], '\n')
			if j < 0 {
				break
			}
			before := last
			if i+j > 0 {
				before = piece[i+j-1]
			}
			if m.ends++; before == '\r' {
				m.crlfs++
			}
			if i += j + 1; m.ends == first-1 {
				m.start = m.bytes + int64(i)
			}
		}
		if n > 0 {
			last = piece[n-1]
		}
		m.bytes += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, err
		}
	}
	if m.lines = m.ends; last != '\n' {
		m.lines++
	}
	return m, nil
}

// header says how much there is and how much of it follows.
func header(w io.Writer, name string, m measured, first, last int64) {
	which := "all of them"
	if first > 1 || last < m.lines {
		which = fmt.Sprintf("shown are %d to %d", first, last)
		if first == last {
			which = fmt.Sprintf("shown is %d", first)
		}
	}
	note := ""
	if m.crlf() {
		note = "; lines end in CRLF"
	}
	_, _ = fmt.Fprintf(w, "%s: %s, %s; %s%s\n", quoted(name), counted(m.lines, "line"), counted(m.bytes, "byte"), which, note) // Flush tells
}

// show prints lines with their numbers, which are as wide as the last one.
func show(w *bufio.Writer, r io.Reader, first, last int64, crlf bool) error {
	width := len(strconv.FormatInt(last, 10))
	in := bufio.NewReaderSize(r, 64<<10)
	for n := first; n <= last; n++ {
		number := strconv.FormatInt(n, 10)
		for range width - len(number) {
			_ = w.WriteByte(' ') // Flush tells, here and below
		}
		_, _ = w.WriteString(number)
		_ = w.WriteByte('\t')
		more, err := line(w, in, crlf)
		_ = w.WriteByte('\n')
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// line prints one, as far as it is shown; more says that another one follows. Of
// a line of any length no more is held than the reader's buffer.
func line(w *bufio.Writer, in *bufio.Reader, crlf bool) (more bool, err error) {
	var shown, cut int64 // characters
	for {
		piece, err := in.ReadSlice('\n')
		if err == nil {
			piece = piece[:len(piece)-1]
			if crlf && len(piece) > 0 {
				piece = piece[:len(piece)-1]
			}
		}
		if room := maxLineChars - shown; room > 0 {
			n := characters(piece, room)
			_, _ = w.Write(piece[:n])
			shown += begins(piece[:n])
			piece = piece[n:]
		}
		cut += begins(piece)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case cut > 0:
			_, _ = fmt.Fprintf(w, " [line cut: %s more]", counted(cut, "character"))
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return err == nil, err
	}
}

// characters is how many bytes of b hold its first n characters.
func characters(b []byte, n int64) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// begins counts the characters that begin in b, which may be cut anywhere.
func begins(b []byte) int64 {
	var n int64
	for _, c := range b {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}
