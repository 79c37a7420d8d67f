package procgroup

import (
	"strings"
	"sync"
)

// HeadBuffer stores the beginning of an output and counts all bytes of it. It
// deliberately has no ReadFrom method, which io.Copy would use without a bound.
type HeadBuffer struct {
	Limit int    // maximum length of Data, in bytes
	Data  []byte // beginning of the output
	Size  int64  // size of the output, in bytes
}

// Write implements io.Writer.
func (h *HeadBuffer) Write(p []byte) (int, error) {
	h.Size += int64(len(p))
	h.Data = append(h.Data, p[:min(len(p), h.Limit-len(h.Data))]...)
	return len(p), nil
}

// TailBuffer stores the end of an output. Text may be called during a Write.
type TailBuffer struct {
	Limit int // in bytes

	mu        sync.Mutex
	data      []byte
	truncated bool // the beginning was dropped
}

// Write implements io.Writer.
func (t *TailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-t.Limit):]...)
	t.truncated = t.truncated || len(p) > t.Limit
	if excess := len(t.data) - t.Limit; excess > 0 {
		t.data, t.truncated = append(t.data[:0], t.data[excess:]...), true
	}
	return len(p), nil
}

// Text returns the end of the output as valid UTF-8, and whether the beginning
// was dropped.
func (t *TailBuffer) Text() (text string, truncated bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.data), "\uFFFD"), t.truncated
}
