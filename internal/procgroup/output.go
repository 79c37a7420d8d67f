package procgroup

import (
	"strings"
	"sync"
)

// HeadBuffer keeps the beginning of an output and counts all of it. It
// deliberately has no ReadFrom method, which io.Copy would use without a bound.
type HeadBuffer struct {
	Limit int // in bytes
	Data  []byte
	Size  int64
}

// Write implements io.Writer.
func (h *HeadBuffer) Write(p []byte) (int, error) {
	h.Size += int64(len(p))
	h.Data = append(h.Data, p[:min(len(p), h.Limit-len(h.Data))]...)
	return len(p), nil
}

// TailBuffer keeps the end of an output. It may be read while it is written.
type TailBuffer struct {
	Limit int // in bytes

	mu   sync.Mutex
	data []byte
	cut  bool // the beginning was dropped
}

// Write implements io.Writer.
func (t *TailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-t.Limit):]...)
	t.cut = t.cut || len(p) > t.Limit
	if over := len(t.data) - t.Limit; over > 0 {
		t.data, t.cut = append(t.data[:0], t.data[over:]...), true
	}
	return len(p), nil
}

// Text returns the kept bytes as valid UTF-8, and whether the beginning was
// dropped.
func (t *TailBuffer) Text() (text string, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.data), "\uFFFD"), t.cut
}
