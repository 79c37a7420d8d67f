// Package hubtest is a server on loopback that behaves like the Hugging Face
// hub, as far as package hub uses it: revisions, paged listings, files that
// are redirected to another host, ranges, and the hub's ways to refuse. It can
// be told to misbehave.
//
//	s := hubtest.New(t)
//	s.Add("org/name", hubtest.Commit(1), map[string][]byte{"data/test-00000-of-00001.parquet": data})
//	h, err := hub.New(hub.Config{Endpoint: s.URL, Dir: t.TempDir()})
package hubtest

import (
	"crypto/sha1" //nolint:gosec // what Git names its blobs by
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is the hub and the host that keeps its large files (CDN). Its methods
// may be called at any time.
type Server struct {
	URL string // of the hub
	CDN string // of the file store, another port

	t    testing.TB
	wait sync.WaitGroup
	hub  *http.Server
	cdn  *http.Server

	mu       sync.Mutex
	repos    map[string]*repo
	moved    map[string]string
	token    string
	log      []Request
	refusals []refusal
	cuts     []int64
	corrupt  int
	noRanges bool
	pageSize int
	chunk    int
	each     func(sent int64)
	sent     int64
}

type repo struct {
	private, gated bool
	revisions      map[string]string // name -> commit
	commits        map[string][]*stored
}

// stored is a file; large ones have a SHA-256 and live on the CDN.
type stored struct {
	name, sha1, sha256 string
	data               []byte
}

func (f *stored) large() bool { return f.sha256 != "" }

// Request is one that was served.
type Request struct {
	CDN        bool // else the hub
	Method     string
	Path       string // escaped, without the query
	Range      string
	Authorized bool // had an Authorization header
	Status     int
}

// New starts a server that ends with the test. It calls t.Errorf when the CDN
// is shown a token.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, repos: map[string]*repo{}, moved: map[string]string{}, pageSize: 1000}
	s.hub, s.URL = s.listen(s.serveHub)
	s.cdn, s.CDN = s.listen(s.serveCDN)
	t.Cleanup(s.Close)
	return s
}

func (s *Server) listen(handle http.HandlerFunc) (*http.Server, string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens as long as the server lives
	if err != nil {
		s.t.Errorf("listen on loopback: %v", err)
		return &http.Server{ReadHeaderTimeout: time.Minute}, ""
	}
	server := &http.Server{Handler: handle, ReadHeaderTimeout: time.Minute}
	s.wait.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.t.Errorf("serve: %v", err)
		}
	})
	return server, "http://" + l.Addr().String()
}

// Close ends the server, and the requests that it is serving. New has arranged
// for it; a test may be earlier, to be without a network.
func (s *Server) Close() {
	_ = s.hub.Close()
	_ = s.cdn.Close()
	s.wait.Wait()
}

// Commit makes a commit id out of a number.
func Commit(n int) string { return fmt.Sprintf("%040x", n) }

// Add gives a repository a commit, to which main then leads. Files that end in
// .parquet or .gz are large ones, as the hub's default has it.
func (s *Server) Add(name, commit string, files map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[name]
	if r == nil {
		r = &repo{revisions: map[string]string{}, commits: map[string][]*stored{}}
		s.repos[name] = r
	}
	r.revisions["main"] = commit
	r.commits[commit] = nil
	for path, data := range files {
		f := &stored{name: path, data: data, sha1: GitSHA1(data)}
		if strings.HasSuffix(path, ".parquet") || strings.HasSuffix(path, ".gz") {
			sum := sha256.Sum256(data)
			f.sha256 = hex.EncodeToString(sum[:])
		}
		r.commits[commit] = append(r.commits[commit], f)
	}
	slices.SortFunc(r.commits[commit], func(a, b *stored) int { return strings.Compare(a.name, b.name) })
}

// GitSHA1 is what Git calls a blob of this content.
func GitSHA1(data []byte) string {
	h := sha1.New() //nolint:gosec // as above
	_, _ = fmt.Fprintf(h, "blob %d\x00%s", len(data), data)
	return hex.EncodeToString(h.Sum(nil))
}

// Point makes a branch or tag lead to a commit.
func (s *Server) Point(name, revision, commit string) {
	s.edit(name, func(r *repo) { r.revisions[revision] = commit })
}

// Private hides a repository from who has not the token.
func (s *Server) Private(name string) { s.edit(name, func(r *repo) { r.private = true }) }

// Gated refuses a repository's files, and its listing, to everyone.
func (s *Server) Gated(name string) { s.edit(name, func(r *repo) { r.gated = true }) }

func (s *Server) edit(name string, change func(*repo)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.repos[name]; r != nil {
		change(r)
	} else {
		s.t.Errorf("hubtest: no repository %s", name)
	}
}

// Rename redirects from an old name of a repository, as the hub does.
func (s *Server) Rename(from, to string) {
	s.set(func() { s.moved[from] = to })
}

// Token is the one that is valid. Without it every token is refused.
func (s *Server) Token(token string) { s.set(func() { s.token = token }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
