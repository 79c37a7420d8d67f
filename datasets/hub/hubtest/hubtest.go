// Package hubtest is a fake Hugging Face hub on loopback with the features that package hub
// uses: revisions, paged listings, redirects to a file store and error responses. It can inject
// faults.
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
	"strconv"
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

type refusal struct {
	status int
	header http.Header
}

// Request is a request that was served.
type Request struct {
	CDN        bool   // to the CDN, not to the hub
	Path       string // escaped, without the query
	Authorized bool   // it had an Authorization header
	Status     int
}

// New starts a server for the length of the test. The test fails if the CDN receives a
// token.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, repos: map[string]*repo{}, renamed: map[string]string{}, pageSize: 1000}
	s.hub, s.cdn = httptest.NewServer(s.serve(false, s.hubHandler())), httptest.NewServer(s.serve(true, s.cdnHandler()))
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
	s.set(func() { s.repos[name].revisions[revision] = commit })
}

// SetPrivate hides a repository from clients without the token.
func (s *Server) SetPrivate(name string) { s.set(func() { s.repos[name].private = true }) }

// SetGated denies all clients access to a repository.
func (s *Server) SetGated(name string) { s.set(func() { s.repos[name].gated = true }) }

// Rename redirects requests for the old name of a repository to its new name.
func (s *Server) Rename(from, to string) { s.set(func() { s.renamed[from] = to }) }

// SetToken sets the valid token. By default every token is rejected.
func (s *Server) SetToken(token string) { s.set(func() { s.token = token }) }

// Refuse answers the next n requests to the hub with a status. header contains pairs of
// names and values.
func (s *Server) Refuse(n, status int, header ...string) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	s.set(func() { s.refusals = append(s.refusals, slices.Repeat([]refusal{{status, h}}, n)...) })
}

// RateLimit answers the next n requests with 429 and Retry-After.
func (s *Server) RateLimit(n, seconds int) {
	s.Refuse(n, http.StatusTooManyRequests, "Retry-After", strconv.Itoa(seconds))
}

// Truncate closes the connection of the next n file downloads after so many bytes.
func (s *Server) Truncate(n int, after int64) {
	s.set(func() { s.truncations = append(s.truncations, slices.Repeat([]int64{after}, n)...) })
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
func (s *Server) Requests() (list []Request) {
	s.set(func() { list = slices.Clone(s.requests) })
	return list
}

// Downloads returns the downloads of files whose names have a suffix.
func (s *Server) Downloads(suffix string) []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool {
		return !strings.HasSuffix(r.Path, suffix) || r.Status/100 == 3 || !strings.Contains(r.Path, "/resolve/")
	})
}

// ResetRequests empties the list of requests.
func (s *Server) ResetRequests() { s.set(func() { s.requests = nil }) }

// set calls change with the lock held.
func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}
