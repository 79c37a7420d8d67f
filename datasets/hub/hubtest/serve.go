package hubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// serve returns a handler that records the requests.
func (s *Server) serve(cdn bool, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := Request{CDN: cdn, Path: r.URL.EscapedPath(), Authorized: r.Header.Get("Authorization") != ""}
		handler.ServeHTTP(&writer{ResponseWriter: w, s: s, request: request, left: math.MaxInt64}, r)
	})
}

// writer is a ResponseWriter that records the request and applies the faults.
type writer struct {
	http.ResponseWriter
	s       *Server
	request Request
	left    int64 // bytes until the connection is closed
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	w.request.Status = status
	w.s.set(func() { w.s.requests = append(w.s.requests, w.request) })
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (written int, err error) {
	if w.request.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
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
		if onChunk != nil && err == nil && strings.Contains(w.request.Path, "/resolve/") {
			onChunk(sent)
		}
	}
	return written, err
}

// refuse answers with a status and an error of the hub.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Message", message)
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.WriteHeader(status)
}

func sendJSON(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (s *Server) hubHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/datasets", func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, []any{}) })
	mux.HandleFunc("GET /api/datasets/{org}/{name}/revision/{revision}", func(w http.ResponseWriter, r *http.Request) {
		if _, commit, ok := s.find(w, r); ok {
			sendJSON(w, map[string]string{"sha": commit})
		}
	})
	mux.HandleFunc("GET /api/datasets/{org}/{name}/tree/{revision}", s.tree)
	mux.HandleFunc("GET /datasets/{org}/{name}/resolve/{revision}/{path...}", s.resolve)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var refused *refusal
		s.set(func() {
			if len(s.refusals) > 0 {
				refused, s.refusals = &s.refusals[0], s.refusals[1:]
			}
		})
		switch {
		case refused != nil:
			maps.Copy(w.Header(), refused.header)
			w.WriteHeader(refused.status)
		case r.Header.Get("Authorization") != "" && !s.isAuthorized(r):
			refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (s *Server) isAuthorized(r *http.Request) (authorized bool) {
	s.set(func() { authorized = s.token != "" && r.Header.Get("Authorization") == "Bearer "+s.token })
	return authorized
}

// find returns the files of the revision in a request, and its commit. If the client has no
// access, find answers the request.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (files []*file, commit string, ok bool) {
	authorized, name := s.isAuthorized(r), r.PathValue("org")+"/"+r.PathValue("name")
	s.mu.Lock()
	to, isRenamed := s.renamed[name]
	repo := s.repos[name]
	commit = r.PathValue("revision")
	if repo != nil {
		if c, isName := repo.revisions[commit]; isName {
			commit = c
		}
		files, ok = repo.commits[commit]
	}
	s.mu.Unlock()
	switch {
	case isRenamed:
		w.Header().Set("Location", strings.Replace(r.URL.RequestURI(), name, to, 1))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case repo == nil && authorized:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case repo == nil, repo.private && !authorized:
		refuse(w, http.StatusUnauthorized, "", "Invalid username or password.")
	case repo.gated && authorized:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to dataset "+name+" is restricted.")
	case repo.gated:
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to dataset "+name+" is restricted.")
	case !ok:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+commit)
	default:
		return files, commit, true
	}
	return nil, "", false
}

func (s *Server) tree(w http.ResponseWriter, r *http.Request) {
	files, _, ok := s.find(w, r)
	if !ok {
		return
	}
	items := []any{}
	start, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	if start == 0 {
		items = append(items, map[string]any{"type": "directory", "oid": GitSHA1(nil), "size": 0, "path": "data"})
	}
	end := min(start+s.pageSize, len(files))
	for _, f := range files[start:end] {
		item := map[string]any{"type": "file", "oid": f.sha1, "size": len(f.data), "path": f.name}
		if f.sha256 != "" {
			item["lfs"] = map[string]any{"oid": f.sha256, "size": len(f.data), "pointerSize": 132}
		}
		items = append(items, item)
	}
	if end < len(files) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, s.URL, r.URL.EscapedPath(), end))
	}
	sendJSON(w, items)
}

func (s *Server) resolve(w http.ResponseWriter, r *http.Request) {
	files, _, ok := s.find(w, r)
	if !ok {
		return
	}
	for _, f := range files {
		switch {
		case f.name != r.PathValue("path"):
			continue
		case f.sha256 != "":
			w.Header().Set("Location", s.CDN+r.URL.EscapedPath()+"?Signature=secret-signature")
			w.WriteHeader(http.StatusFound)
		default:
			s.send(w, f)
		}
		return
	}
	refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
}

// cdnHandler sends large files if the URL is signed. If a request has a token, the test fails.
func (s *Server) cdnHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /datasets/{org}/{name}/resolve/{revision}/{path...}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			s.t.Errorf("hubtest: the token was shown to the file store, for %s", r.URL.Path)
		}
		if r.URL.Query().Get("Signature") != "secret-signature" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.mu.Lock()
		repo := s.repos[r.PathValue("org")+"/"+r.PathValue("name")]
		files := repo.commits[r.PathValue("revision")]
		s.mu.Unlock()
		for _, f := range files {
			if f.name == r.PathValue("path") {
				s.send(w, f)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	})
	return mux
}

// send sends a file, with the faults.
func (s *Server) send(w http.ResponseWriter, f *file) {
	data := f.data
	s.set(func() {
		if faulty, ok := w.(*writer); ok && len(s.truncations) > 0 {
			faulty.left, s.truncations = s.truncations[0], s.truncations[1:]
		}
		if s.corrupt > 0 && len(data) > 0 {
			s.corrupt--
			data = bytes.Clone(data)
			data[len(data)-1] ^= 1
		}
	})
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) //nolint:gosec // no browser reads it; the client may be gone
}
