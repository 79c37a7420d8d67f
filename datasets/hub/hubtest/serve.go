package hubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// answer is a response without the content of a file.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func refuse(status int, code, message string) answer {
	h := http.Header{"X-Error-Message": {message}}
	if code != "" {
		h.Set("X-Error-Code", code)
	}
	body, _ := json.Marshal(map[string]string{"error": message})
	return answer{status, h, body}
}

func jsonAnswer(v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return refuse(http.StatusInternalServerError, "", err.Error())
	}
	return answer{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, body}
}

func (s *Server) serveHub(w http.ResponseWriter, r *http.Request) {
	f, a := s.route(r)
	if f != nil {
		s.send(w, r, f, false)
		return
	}
	s.record(r, false, a.status)
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone
}

// record adds a request to the list of requests.
func (s *Server) record(r *http.Request, cdn bool, status int) {
	s.set(func() {
		s.requests = append(s.requests, Request{
			CDN: cdn, Method: r.Method, Path: r.URL.EscapedPath(),
			Authorized: r.Header.Get("Authorization") != "", Status: status,
		})
	})
}

// route returns a file to send, or another response.
func (s *Server) route(r *http.Request) (*file, answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := pop(&s.refusals); ok {
		return nil, answer{status: f.status, header: f.header}
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	authorized := token != "" && token == s.token
	if token != "" && !authorized {
		return nil, refuse(http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
	}
	parts := segments(r.URL)
	switch {
	case len(parts) == 2 && parts[0] == "api" && parts[1] == "datasets":
		return nil, jsonAnswer([]any{})
	case len(parts) > 5 && parts[0] == "api" && parts[1] == "datasets":
		return nil, s.api(r, parts[2]+"/"+parts[3], parts[4], parts[5], authorized)
	case len(parts) > 5 && parts[0] == "datasets" && parts[3] == "resolve":
		return s.resolve(r, parts[1]+"/"+parts[2], parts[4], strings.Join(parts[5:], "/"), authorized)
	}
	return nil, refuse(http.StatusNotFound, "", "Sorry, we can't find the page you are looking for.")
}

// segments splits a path at its slashes, except escaped ones.
func segments(u *url.URL) []string {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, p := range parts {
		if plain, err := url.PathUnescape(p); err == nil {
			parts[i] = plain
		}
	}
	return parts
}

// find checks the access to a repository and returns the commit of a revision and its files.
// If the repository is renamed, or they are not available to the client, it returns an answer
// with a status.
func (s *Server) find(r *http.Request, name, revision string, authorized bool) (files []*file, commit string, a answer) {
	if to, ok := s.renamed[name]; ok {
		location := strings.Replace(r.URL.RequestURI(), name, to, 1)
		return nil, "", answer{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {location}}}
	}
	repo := s.repos[name]
	switch {
	case repo == nil && authorized:
		return nil, "", refuse(http.StatusNotFound, "RepoNotFound", "Repository not found")
	case repo == nil, repo.private && !authorized:
		return nil, "", refuse(http.StatusUnauthorized, "", "Invalid username or password.")
	case repo.gated:
		status := http.StatusUnauthorized
		if authorized {
			status = http.StatusForbidden
		}
		return nil, "", refuse(status, "GatedRepo", "Access to dataset "+name+" is restricted.")
	}
	commit = revision
	if c, ok := repo.revisions[revision]; ok {
		commit = c
	}
	files, ok := repo.commits[commit]
	if !ok {
		return nil, "", refuse(http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
	}
	return files, commit, answer{}
}

func (s *Server) api(r *http.Request, name, what, revision string, authorized bool) answer {
	files, commit, a := s.find(r, name, revision, authorized)
	switch {
	case a.status != 0:
		return a
	case what == "revision":
		return jsonAnswer(map[string]any{"id": name, "sha": commit, "private": s.repos[name].private})
	case what == "tree":
		return s.tree(r, files)
	}
	return refuse(http.StatusNotFound, "", "Not found")
}

func (s *Server) tree(r *http.Request, files []*file) answer {
	type large struct {
		OID         string `json:"oid"`
		Size        int    `json:"size"`
		PointerSize int    `json:"pointerSize"`
	}
	type item struct {
		Type string `json:"type"`
		OID  string `json:"oid"`
		Size int    `json:"size"`
		Path string `json:"path"`
		LFS  *large `json:"lfs,omitempty"`
	}
	start, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	start = min(max(start, 0), len(files))
	end := min(start+s.pageSize, len(files))
	items := []item{}
	if start == 0 {
		items = append(items, item{Type: "directory", OID: GitSHA1(nil), Path: "data"})
	}
	for _, f := range files[start:end] {
		it := item{Type: "file", OID: f.sha1, Size: len(f.data), Path: f.name}
		if f.large() {
			it.LFS = &large{f.sha256, len(f.data), 132}
		}
		items = append(items, it)
	}
	a := jsonAnswer(items)
	if end < len(files) {
		a.header.Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, s.URL, r.URL.EscapedPath(), end))
	}
	return a
}

func (s *Server) resolve(r *http.Request, name, revision, path string, authorized bool) (*file, answer) {
	files, commit, a := s.find(r, name, revision, authorized)
	if a.status != 0 {
		return nil, a
	}
	for _, f := range files {
		switch {
		case f.name != path:
			continue
		case f.large():
			return nil, answer{status: http.StatusFound, header: http.Header{
				"Location":      {s.CDN + strings.Replace(r.URL.EscapedPath(), "/resolve/"+url.PathEscape(revision)+"/", "/resolve/"+commit+"/", 1) + "?Signature=secret-signature"},
				"X-Repo-Commit": {commit}, "X-Linked-Etag": {`"` + f.sha256 + `"`}, "X-Linked-Size": {strconv.Itoa(len(f.data))},
			}}
		}
		return f, answer{}
	}
	return nil, refuse(http.StatusNotFound, "EntryNotFound", "Entry not found")
}
