package images

// Standing is how much room there is, in bytes.
type Standing struct {
	Free  int64 // on the engine's disk
	Known bool  // that can be measured from here
	// Budget is the bound of what mini pulled, 0 where there is none, and Taken what
	// that took when it was last measured; below 0 where it never was.
	Budget, Taken int64
}

// Standing looks at the disk, and asks nobody.
func (s *Store) Standing() Standing {
	st := Standing{Budget: s.cfg.Budget, Taken: -1}
	if s.host.Free != nil {
		st.Free, st.Known = s.host.Free()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasTaken {
		st.Taken = s.taken
	}
	return st
}
