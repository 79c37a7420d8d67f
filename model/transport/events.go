package transport

import (
	"bufio"
	"bytes"
	"io"
)

// events passes the data lines and blank lines of an event stream on, and
// nothing else. Servers send comments to keep connections alive, and event
// names; client libraries stumble over both, the more when an error follows.
type events struct {
	in   *bufio.Reader
	rest []byte // of a line that is being handed out
	last *[]byte

	redact Redactor
}

func newEvents(r io.Reader, last *[]byte, redact Redactor) *events {
	*last = nil
	return &events{in: bufio.NewReader(r), last: last, redact: redact}
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		line, err := e.in.ReadBytes('\n')
		line = e.redact.Bytes(line)
		text := bytes.TrimSpace(line)
		data, isData := bytes.CutPrefix(text, []byte("data:"))
		switch {
		case isData:
			*e.last = bytes.TrimSpace(data)
			e.rest = line
		case len(text) == 0:
			e.rest = line
		}
		if err != nil {
			n := copy(p, e.rest)
			e.rest = e.rest[n:]
			if len(e.rest) > 0 {
				err = nil // the rest, and the error again, at the next call
			}
			return n, err
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
