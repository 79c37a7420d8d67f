package helper

import "sync"

// stderrKept is how many bytes Stderr keeps.
const stderrKept = 4 << 10

// Stderr keeps the beginning of what a helper writes there, which it does only
// when it crashes, and takes the rest. The zero value is ready; its methods are
// safe for concurrent use.
type Stderr struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (s *Stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p[:min(len(p), stderrKept-len(s.kept))]...)
	return len(p), nil
}

// String is what was kept; it is the sandbox's word, and not to be trusted.
func (s *Stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.kept)
}
