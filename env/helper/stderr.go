package helper

import "sync"

// stderrLimit is the maximum number of bytes that StderrBuffer keeps.
const stderrLimit = 4 << 10

// StderrBuffer keeps the beginning of a helper's standard error and discards the rest.
// A helper writes to standard error only when it crashes. The zero value is ready to
// use; its methods are safe for concurrent use.
type StderrBuffer struct {
	mu   sync.Mutex
	kept []byte
}

// Write never returns an error.
func (s *StderrBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p[:min(len(p), stderrLimit-len(s.kept))]...)
	return len(p), nil
}

// String returns the kept bytes. They come from the sandbox and are untrusted.
func (s *StderrBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.kept)
}
