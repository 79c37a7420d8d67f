// Package hubtest is a fake Hugging Face hub on loopback with the features that package hub
// uses: revisions, paged listings, redirects to a file store and error responses. It can inject faults.
//
//	s := hubtest.New(t)
//	s.Add("org/name", hubtest.Commit(1), map[string][]byte{"data/test-00000-of-00001.parquet": data})
//	h, err := hub.New(hub.Config{Endpoint: s.URL, Dir: t.TempDir()})
package hubtest

import (
	"crypto/sha1" //nolint:gosec // used by Git
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is the hub and the host of its large files (CDN). Its methods are safe for
// concurrent use.
type Server struct {
	URL string // of the hub
	CDN string // URL of the file store

	t        testing.TB
	hub, cdn *httptest.Server

	mu          sync.Mutex
	repos       map[string]*repo
	renamed     map[string]string // new names of repositories by old ones
	token       string
	requests    []Request
	refusals    []refusal // for the next requests
	truncations []int64   // for the next downloads: bytes before the connection is closed
	corrupt     int       // number of downloads to corrupt
	pageSize    int
	chunk       int // bytes; see Throttle
	onChunk     func(sent int64)
	sent        int64
}

type repo struct {
	private, gated bool
	revisions      map[string]string // name -> commit
	commits        map[string][]*file
}

// file is a file of a repository. A large file has a SHA-256 and is on the CDN.
type file struct {
	name, sha1, sha256 string
	data               []byte
}

func (f *file) large() bool { return f.sha256 != "" }

// Request is a request that was served.
type Request struct {
	CDN        bool // to the CDN, not to the hub
	Method     string
	Path       string // escaped, without the query
	Authorized bool   // it had an Authorization header
	Status     int
}

// New starts a server for the length of the test. The test fails if the CDN receives a
// token.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, repos: map[string]*repo{}, renamed: map[string]string{}, pageSize: 1000}
	s.hub, s.cdn = httptest.NewServer(http.HandlerFunc(s.serveHub)), httptest.NewServer(http.HandlerFunc(s.serveCDN))
	s.URL, s.CDN = s.hub.URL, s.cdn.URL
	t.Cleanup(s.Close)
	return s
}

// Close closes the server and its connections. New closes it after the test; a test may
// call Close earlier to simulate a network failure.
func (s *Server) Close() {
	for _, server := range []*httptest.Server{s.hub, s.cdn} {
		server.CloseClientConnections()
		server.Close()
	}
}

// Commit returns a commit id for a number.
func Commit(n int) string { return fmt.Sprintf("%040x", n) }

// Add adds a commit to a repository and sets main to it. Files with the extension .parquet or
// .gz are large, as by default on the hub.
func (s *Server) Add(name, commit string, files map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[name]
	if r == nil {
		r = &repo{revisions: map[string]string{}, commits: map[string][]*file{}}
		s.repos[name] = r
	}
	r.revisions["main"] = commit
	r.commits[commit] = nil
	for path, data := range files {
		f := &file{name: path, data: data, sha1: GitSHA1(data)}
		if strings.HasSuffix(path, ".parquet") || strings.HasSuffix(path, ".gz") {
			sum := sha256.Sum256(data)
			f.sha256 = hex.EncodeToString(sum[:])
		}
		r.commits[commit] = append(r.commits[commit], f)
	}
	slices.SortFunc(r.commits[commit], func(a, b *file) int { return strings.Compare(a.name, b.name) })
}

// GitSHA1 returns the id of a Git blob.
func GitSHA1(data []byte) string {
	h := sha1.New() //nolint:gosec // as above
	_, _ = fmt.Fprintf(h, "blob %d\x00%s", len(data), data)
	return hex.EncodeToString(h.Sum(nil))
}

// SetRevision sets a branch or tag to a commit.
func (s *Server) SetRevision(name, revision, commit string) {
	s.edit(name, func(r *repo) { r.revisions[revision] = commit })
}

// SetPrivate hides a repository from clients without the token.
func (s *Server) SetPrivate(name string) { s.edit(name, func(r *repo) { r.private = true }) }

// SetGated denies all clients access to a repository.
func (s *Server) SetGated(name string) { s.edit(name, func(r *repo) { r.gated = true }) }

func (s *Server) edit(name string, change func(*repo)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.repos[name]; r != nil {
		change(r)
	} else {
		s.t.Errorf("hubtest: no repository %s", name)
	}
}

// Rename redirects requests for the old name of a repository to its new name.
func (s *Server) Rename(from, to string) {
	s.set(func() { s.renamed[from] = to })
}

// SetToken sets the valid token. By default every token is rejected.
func (s *Server) SetToken(token string) { s.set(func() { s.token = token }) }

// set calls change with the lock held.
func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
