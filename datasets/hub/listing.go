package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/unit"
)

// Limits for responses of the hub. The largest listings of the public hub have some
// thousand files in some hundred kilobytes.
const (
	maxJSON  = 64 << 20 // bytes of one response
	maxFiles = 100_000
	maxPages = 2000
	maxSize  = 1 << 40 // bytes of one file
	maxName  = 1024    // bytes of a file's name
)

// entry is a file of a repository at one commit, in the hub's JSON.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"` // SHA-1 of the Git blob
	LFS  *struct {
		OID  string `json:"oid"` // SHA-256
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// blob returns the checksum of the file, which is its name in the cache.
func (e entry) blob() string {
	if e.LFS != nil {
		return strings.TrimPrefix(e.LFS.OID, "sha256:")
	}
	return e.OID
}

func (e entry) size() int64 {
	if e.LFS != nil {
		return e.LFS.Size
	}
	return e.Size
}

// check returns an error about a file that must not be downloaded.
func (e entry) check() error {
	switch {
	case len(e.Path) > maxName || !utf8.ValidString(e.Path) || !cleanPath(e.Path) || strings.ContainsFunc(e.Path, unprintable):
		return fmt.Errorf("a file with the name %.100q", e.Path)
	case e.size() < 0 || e.size() > maxSize:
		return fmt.Errorf("a file of %d bytes", e.size())
	case !checksum.MatchString(e.blob()) || (len(e.blob()) == 64) != (e.LFS != nil):
		return fmt.Errorf("a file without a checksum, %.100q", e.Path)
	}
	return nil
}

var (
	checksum = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`) // also of a commit
	nextLink = lazyregexp.New(`<([^<>]*)>\s*;[^,]*\brel="?next"?`)
)

// commit returns the commit of a revision.
func (h *Hub) commit(ctx context.Context, ref Ref) (string, error) {
	var answer struct {
		SHA string `json:"sha"`
	}
	address := fmt.Sprintf("%s/api/datasets/%s/revision/%s", h.endpoint, ref.Repo, url.PathEscape(ref.Revision))
	if _, err := h.getJSON(ctx, address, ref, &answer); err != nil {
		return "", err
	}
	if !checksum.MatchString(answer.SHA) {
		return "", h.responseError(ref, "it contains no commit")
	}
	return answer.SHA, nil
}

// list returns the data files of a commit, and the dataset card.
func (h *Hub) list(ctx context.Context, ref Ref, commit string) ([]entry, error) {
	base := fmt.Sprintf("%s/api/datasets/%s/tree/%s", h.endpoint, ref.Repo, commit)
	query := "recursive=true"
	var found []entry
	seen := 0
	for range maxPages {
		var page []entry
		header, err := h.getJSON(ctx, base+"?"+query, ref, &page)
		if err != nil {
			return nil, err
		}
		if seen += len(page); seen > maxFiles {
			return nil, &Error{Text: fmt.Sprintf("%s has more than %d files", ref, maxFiles), Hint: "download the data yourself, and pass the directory to --subset"}
		}
		for _, e := range page {
			if e.Type != "file" || (!datasets.IsDataFile(path.Base(e.Path)) && e.Path != cardName) {
				continue
			}
			if err := e.check(); err != nil {
				return nil, h.responseError(ref, err.Error())
			}
			if datasets.IsDataFile(e.Path) || e.Path == cardName { // skip files in hidden directories
				found = append(found, e)
			}
		}
		if query = nextPage(header); query == "" {
			return found, nil
		}
	}
	return nil, h.responseError(ref, "the listing has too many pages")
}

// nextPage returns the query of the next page; "" for the last page. It ignores the host of
// the link, because a mirror may link to the original hub.
func nextPage(header http.Header) string {
	for _, link := range header.Values("Link") {
		if m := nextLink.FindStringSubmatch(link); m != nil {
			if u, err := url.Parse(m[1]); err == nil {
				return u.RawQuery
			}
		}
	}
	return ""
}

// cardName is the dataset card, which may define the splits.
const cardName = "README.md"

// getJSON makes an API request.
func (h *Hub) getJSON(ctx context.Context, address string, ref Ref, into any) (http.Header, error) {
	var header http.Header
	err := h.get(ctx, ref, address, func(resp *http.Response) error {
		header = resp.Header
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxJSON+1))
		switch {
		case err != nil:
			return err
		case len(body) > maxJSON:
			return h.responseError(ref, "more than "+unit.Size(maxJSON))
		case json.Unmarshal(body, into) != nil:
			return h.responseError(ref, "invalid JSON")
		}
		return nil
	})
	return header, err
}

// responseError returns the error for an invalid response.
func (h *Hub) responseError(ref Ref, reason string) *Error {
	return &Error{
		Text: fmt.Sprintf("invalid response of %s about %s: %s", printable(h.host), ref, reason),
		Hint: "check HF_ENDPOINT, and whether a proxy or a login page answers instead of the hub",
	}
}
