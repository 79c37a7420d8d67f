package hubtest

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"time"
)

// serveCDN sends a large file if the URL is signed. If the request has a token, the test
// fails.
func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.t.Errorf("hubtest: the token was shown to the file store, for %s", r.URL.Path)
	}
	parts := segments(r.URL)
	if len(parts) < 6 || r.URL.Query().Get("Signature") != "secret-signature" {
		s.record(r, true, http.StatusForbidden)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var found *file
	s.set(func() {
		for _, f := range s.repos[parts[1]+"/"+parts[2]].commits[parts[4]] {
			if f.name == strings.Join(parts[5:], "/") {
				found = f
			}
		}
	})
	if found == nil {
		s.record(r, true, http.StatusNotFound)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.send(w, r, found, true)
}

// send sends a file.
func (s *Server) send(w http.ResponseWriter, r *http.Request, f *file, cdn bool) {
	data := f.data
	out := &faultyWriter{ResponseWriter: w, s: s, r: r, cdn: cdn, left: math.MaxInt64}
	s.set(func() {
		if after, ok := pop(&s.truncations); ok {
			out.left = after
		}
		if s.corrupt > 0 && len(data) > 0 {
			s.corrupt--
			data = bytes.Clone(data)
			data[len(data)-1] ^= 1
		}
	})
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(out, r, f.name, time.Time{}, bytes.NewReader(data))
}

// faultyWriter is a ResponseWriter that sends a file in chunks and applies the faults.
type faultyWriter struct {
	http.ResponseWriter
	s    *Server
	r    *http.Request
	cdn  bool
	left int64 // bytes until the connection is closed
}

// WriteHeader implements http.ResponseWriter.
func (w *faultyWriter) WriteHeader(status int) {
	w.s.record(w.r, w.cdn, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *faultyWriter) Write(data []byte) (written int, err error) {
	for len(data) > 0 && err == nil {
		if w.left == 0 {
			panic(http.ErrAbortHandler) // closes the connection
		}
		n := int(min(int64(len(data)), w.left))
		var onChunk func(int64)
		var sent int64
		w.s.set(func() {
			if w.s.chunk > 0 {
				n = min(n, w.s.chunk)
			}
			onChunk = w.s.onChunk
			w.s.sent += int64(n)
			sent = w.s.sent
		})
		if _, err = w.ResponseWriter.Write(data[:n]); err == nil {
			err = http.NewResponseController(w.ResponseWriter).Flush()
		}
		data, written, w.left = data[n:], written+n, w.left-int64(n)
		if onChunk != nil && err == nil {
			onChunk(sent)
		}
	}
	return written, err
}
