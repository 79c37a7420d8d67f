package hubtest

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// serveCDN sends a large file to who has a signed URL, and to no token.
func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.t.Errorf("hubtest: the token was shown to the file store, for %s", r.URL.Path)
	}
	parts := segments(r.URL)
	if len(parts) < 6 || r.URL.Query().Get("Signature") != "secret-signature" {
		s.note(r, true, http.StatusForbidden)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var found *stored
	s.set(func() {
		for _, f := range s.repos[parts[1]+"/"+parts[2]].commits[parts[4]] {
			if f.name == strings.Join(parts[5:], "/") {
				found = f
			}
		}
	})
	if found == nil {
		s.note(r, true, http.StatusNotFound)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.send(w, r, found, true)
}

// send answers with a file or the rest of it, in the way that was asked for.
func (s *Server) send(w http.ResponseWriter, r *http.Request, f *stored, cdn bool) {
	data, status := f.data, http.StatusOK
	var cut int64 = -1
	s.set(func() {
		if after, ok := pop(&s.cuts); ok {
			cut = after
		}
		if s.corrupt > 0 && len(data) > 0 {
			s.corrupt--
			data = bytes.Clone(data)
			data[len(data)-1] ^= 1
		}
	})
	from, ranged := s.rangeOf(r)
	switch {
	case ranged && from >= len(data):
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(data)))
		s.note(r, cdn, http.StatusRequestedRangeNotSatisfiable)
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	case ranged:
		status = http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		data = data[from:]
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	s.note(r, cdn, status)
	w.WriteHeader(status)
	if cut >= 0 && cut < int64(len(data)) {
		s.write(w, r, data[:cut])
		panic(http.ErrAbortHandler) // the way of net/http to break a connection
	}
	s.write(w, r, data)
}

func (s *Server) rangeOf(r *http.Request) (from int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !ok || s.noRanges {
		return 0, false
	}
	from, err := strconv.Atoi(strings.TrimSuffix(number, "-"))
	return from, err == nil && from >= 0
}

// write sends data, at once or in chunks.
func (s *Server) write(w http.ResponseWriter, r *http.Request, data []byte) {
	flush := http.NewResponseController(w)
	for len(data) > 0 && r.Context().Err() == nil {
		var each func(int64)
		var sent int64
		n := len(data)
		s.set(func() {
			if s.chunk > 0 {
				n = min(n, s.chunk)
			}
			each = s.each
			s.sent += int64(n)
			sent = s.sent
		})
		if _, err := w.Write(data[:n]); err != nil { //nolint:gosec // files for programs, on loopback
			return
		}
		if err := flush.Flush(); err != nil {
			return
		}
		data = data[n:]
		if each != nil {
			each(sent)
		}
	}
}
