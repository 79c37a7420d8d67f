package host

import "strings"

// head keeps the beginning of an output, and counts the whole. It has no method
// but Write: with a bytes.Buffer in it io.Copy would find its ReadFrom, which has
// no bound.
type head struct {
	data []byte
	most int
	size int64
}

func (h *head) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	h.data = append(h.data, p[:min(len(p), h.most-len(h.data))]...)
	return len(p), nil
}

// tail keeps the end of an output.
type tail struct {
	data []byte
	most int
	cut  bool // the beginning was left out
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	t.cut = t.cut || len(t.data)+n > t.most
	p = p[max(0, n-t.most):]
	if over := len(t.data) + len(p) - t.most; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, p...)
	return n, nil
}

// String is the text, without what is no UTF-8.
func (t *tail) String() string { return strings.ToValidUTF8(string(t.data), "\uFFFD") }
