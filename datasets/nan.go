package datasets

import (
	"bufio"
	"bytes"
	"io"
)

// nanReader is JSON with null in place of NaN, Infinity and -Infinity, which Python writes
// and JSON does not have.
type nanReader struct {
	in      *bufio.Reader
	quoted  bool   // in a string
	escaped bool   // after a backslash in a string
	pending []byte // to be read before the rest of in
}

// Read implements io.Reader.
func (r *nanReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(r.pending) > 0 {
			copied := copy(p[n:], r.pending)
			n, r.pending = n+copied, r.pending[copied:]
			continue
		}
		if n > 0 && r.in.Buffered() == 0 {
			return n, nil // do not wait for more
		}
		b, err := r.in.ReadByte()
		if err != nil {
			return n, err
		}
		switch {
		case r.escaped:
			r.escaped = false
		case b == '\\':
			r.escaped = r.quoted
		case b == '"':
			r.quoted = !r.quoted
		case !r.quoted && (b == 'N' || b == 'I' || b == '-') && r.skip(b):
			r.pending = []byte("null")
			continue
		}
		p[n] = b
		n++
	}
	return n, nil
}

// skip skips the rest of a word that begins with b, if it is one of the three.
func (r *nanReader) skip(b byte) bool {
	rest := map[byte]string{'N': "aN", 'I': "nfinity", '-': "Infinity"}[b]
	next, _ := r.in.Peek(len(rest))
	if string(next) != rest {
		return false
	}
	_, _ = r.in.Discard(len(rest)) // just peeked
	return true
}

// withoutNaN returns JSON with null in place of NaN, Infinity and -Infinity.
func withoutNaN(data []byte) []byte {
	all, _ := io.ReadAll(&nanReader{in: bufio.NewReader(bytes.NewReader(data))}) // cannot fail
	return all
}
