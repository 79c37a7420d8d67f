package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
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

// entry is a file of a repository at one commit.
type entry struct {
	name   string
	size   int64
	sha256 string // of a file in Git LFS
	sha1   string // of the Git blob, for other files
}

var (
	commitPattern = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	sha1Hex       = lazyregexp.New(`^[0-9a-f]{40}$`)
	sha256Hex     = lazyregexp.New(`^[0-9a-f]{64}$`)
	nextLink      = lazyregexp.New(`<([^<>]*)>\s*;[^,]*\brel="?next"?`)
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
	if !commitPattern.MatchString(answer.SHA) {
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
		var page []file
		header, err := h.getJSON(ctx, base+"?"+query, ref, &page)
		if err != nil {
			return nil, err
		}
		if seen += len(page); seen > maxFiles {
			return nil, &Error{kind: ErrResponse, Text: fmt.Sprintf("%s has more than %d files", ref, maxFiles), Hint: "download the data yourself, and pass the directory to --subset"}
		}
		for _, f := range page {
			if f.Type != "file" || (!datasets.IsDataFile(path.Base(f.Path)) && f.Path != cardName) {
				continue
			}
			e, err := f.entry()
			if err != nil {
				return nil, h.responseError(ref, err.Error())
			}
			if datasets.IsDataFile(f.Path) || f.Path == cardName { // skip files in hidden directories
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

// file is an entry in the hub's JSON.
type file struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

func (f file) entry() (entry, error) {
	e := entry{name: f.Path, size: f.Size, sha1: f.OID}
	if f.LFS != nil {
		e.size, e.sha256, e.sha1 = f.LFS.Size, strings.TrimPrefix(f.LFS.OID, "sha256:"), ""
	}
	switch {
	case len(e.name) > maxName || !utf8.ValidString(e.name) || !cleanPath(e.name) || strings.ContainsFunc(e.name, unprintable):
		return e, fmt.Errorf("a file with the name %.100q", e.name)
	case e.size < 0 || e.size > maxSize:
		return e, fmt.Errorf("a file of %d bytes", e.size)
	case f.LFS != nil && !sha256Hex.MatchString(e.sha256), f.LFS == nil && !sha1Hex.MatchString(e.sha1):
		return e, fmt.Errorf("a file without a checksum, %.100q", e.name)
	}
	return e, nil
}

// cardName is the dataset card, which may define the splits.
const cardName = "README.md"

// getJSON makes an API request, with retries.
func (h *Hub) getJSON(ctx context.Context, address string, ref Ref, into any) (http.Header, error) {
	var header http.Header
	err := h.retry(ctx, ref.Repo, func(func()) error {
		resp, err := h.get(ctx, request{url: address, from: api, ref: ref})
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // the body was read
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxJSON+1))
		switch {
		case err != nil:
			return err
		case len(body) > maxJSON:
			return h.responseError(ref, fmt.Sprintf("more than %s", size(maxJSON)))
		case json.Unmarshal(body, into) != nil:
			return h.responseError(ref, "invalid JSON")
		}
		header = resp.Header
		return nil
	})
	return header, err
}

// responseError returns the error for an invalid response.
func (h *Hub) responseError(ref Ref, reason string) *Error {
	return &Error{
		kind: ErrResponse, err: errors.New(reason),
		Text: fmt.Sprintf("invalid response of %s about %s: %s", printable(h.host), ref, reason),
		Hint: "check HF_ENDPOINT, and whether a proxy or a login page answers instead of the hub",
	}
}
