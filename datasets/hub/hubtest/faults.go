package hubtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

type refusal struct {
	status int
	header http.Header
}

// Refuse answers the next n requests to the hub with a status. header holds
// pairs of names and values.
func (s *Server) Refuse(n, status int, header ...string) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	s.set(func() {
		for range n {
			s.refusals = append(s.refusals, refusal{status, h})
		}
	})
}

// RateLimit answers the next n requests with 429, and asks to wait so long.
func (s *Server) RateLimit(n, seconds int) {
	s.Refuse(n, http.StatusTooManyRequests, "Retry-After", strconv.Itoa(seconds))
}

// Cut breaks the connection of the next n files after so many bytes of what
// they send.
func (s *Server) Cut(n int, after int64) {
	s.set(func() {
		for range n {
			s.cuts = append(s.cuts, after)
		}
	})
}

// Corrupt changes a byte of the next n files that are sent.
func (s *Server) Corrupt(n int) { s.set(func() { s.corrupt = n }) }

// IgnoreRanges sends whole files to who asks for a part.
func (s *Server) IgnoreRanges(on bool) { s.set(func() { s.noRanges = on }) }

// PageSize is how many files a page of a listing has; 1000 at first.
func (s *Server) PageSize(n int) { s.set(func() { s.pageSize = n }) }

// Dribble sends files in chunks of this many bytes, each flushed, and calls
// each after every one with the bytes of files that were sent since Dribble
// was called. each may block, and holds up the file then; nil is allowed. A
// chunk of 0 ends it.
func (s *Server) Dribble(chunk int, each func(sent int64)) {
	s.set(func() { s.chunk, s.each, s.sent = chunk, each, 0 })
}

// Requests are those that were served since the last Forget, in the order in
// which they were answered.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Files are the requests for the content of files whose names end so.
func (s *Server) Files(suffix string) []Request {
	var found []Request
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, suffix) && r.Status/100 != 3 && strings.Contains(r.Path, "/resolve/") {
			found = append(found, r)
		}
	}
	return found
}

// Forget empties the list of requests.
func (s *Server) Forget() { s.set(func() { s.log = nil }) }

// pop takes the first of a list, under the lock.
func pop[E any](list *[]E) (first E, ok bool) {
	if len(*list) == 0 {
		return first, false
	}
	first = (*list)[0]
	*list = (*list)[1:]
	return first, true
}
