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

// Refuse answers the next n requests to the hub with a status. header contains pairs of
// names and values.
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

// RateLimit answers the next n requests with 429 and Retry-After.
func (s *Server) RateLimit(n, seconds int) {
	s.Refuse(n, http.StatusTooManyRequests, "Retry-After", strconv.Itoa(seconds))
}

// Truncate closes the connection of the next n file downloads after so many bytes.
func (s *Server) Truncate(n int, after int64) {
	s.set(func() {
		for range n {
			s.truncations = append(s.truncations, after)
		}
	})
}

// Corrupt changes a byte in the next n file downloads.
func (s *Server) Corrupt(n int) { s.set(func() { s.corrupt = n }) }

// PageSize sets the number of files per page of a listing; the default is 1000.
func (s *Server) PageSize(n int) { s.set(func() { s.pageSize = n }) }

// Throttle sends files in flushed chunks of so many bytes; 0 turns it off. After each chunk
// the server calls onChunk with the number of bytes sent since the call of Throttle.
// onChunk may be nil and may block.
func (s *Server) Throttle(chunk int, onChunk func(sent int64)) {
	s.set(func() { s.chunk, s.onChunk, s.sent = chunk, onChunk, 0 })
}

// Requests returns the requests since the last ResetRequests, in the order of their
// responses.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Downloads returns the downloads of files whose names have a suffix.
func (s *Server) Downloads(suffix string) []Request {
	var found []Request
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, suffix) && r.Status/100 != 3 && strings.Contains(r.Path, "/resolve/") {
			found = append(found, r)
		}
	}
	return found
}

// ResetRequests empties the list of requests.
func (s *Server) ResetRequests() { s.set(func() { s.requests = nil }) }

// pop removes the first element of a list. The caller holds the lock.
func pop[E any](list *[]E) (first E, ok bool) {
	if len(*list) == 0 {
		return first, false
	}
	first = (*list)[0]
	*list = (*list)[1:]
	return first, true
}
