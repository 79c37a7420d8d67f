package helper

import "sync"

// watch is env.Command.Watch for one call, until that ends.
type watch struct {
	mu   sync.Mutex
	show func(piece []byte) // nil when nobody watches, or not any more
}

// see is called by the reader.
func (w *watch) see(piece []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.show != nil && len(piece) > 0 {
		w.show(piece)
	}
}

// end waits for a piece that is being shown; it is the last one.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.show = nil
}
