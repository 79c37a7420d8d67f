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
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, len(p)-t.most):]
	if over := len(t.data) + len(p) - t.most; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, p...)
	return n, nil
}

// String is the text, without what is no UTF-8.
func (t *tail) String() string { return t.last(t.most) }

func (t *tail) last(most int) string {
	return strings.ToValidUTF8(string(t.data[max(0, len(t.data)-most):]), "\uFFFD")
}
