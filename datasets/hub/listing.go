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

// Bounds on what a hub may tell. The largest answers of the public hub have
// some thousand files in some hundred kilobytes.
const (
	maxJSON  = 64 << 20 // bytes of one answer
	maxFiles = 100_000
	maxPages = 2000
	maxSize  = 1 << 40 // bytes of one file
	maxName  = 1024    // bytes of a file's name
)

// entry is a file of a repository at one commit.
type entry struct {
	name   string
	size   int64
	sha256 string // of a file in large file storage
	sha1   string // of Git's blob, for the others
}

var (
	commitID = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	sha1Hex  = lazyregexp.New(`^[0-9a-f]{40}$`)
	sha256Hx = lazyregexp.New(`^[0-9a-f]{64}$`)
	nextLink = lazyregexp.New(`<([^<>]*)>\s*;[^,]*\brel="?next"?`)
)

// commit asks what a revision is today.
func (h *Hub) commit(ctx context.Context, ref Ref) (string, error) {
	var answer struct {
		SHA string `json:"sha"`
	}
	address := fmt.Sprintf("%s/api/datasets/%s/revision/%s", h.endpoint, ref.Repo, url.PathEscape(ref.Revision))
	if _, err := h.getJSON(ctx, address, ref, &answer); err != nil {
		return "", err
	}
	if !commitID.MatchString(answer.SHA) {
		return "", h.nonsense(ref, "no commit in it")
	}
	return answer.SHA, nil
}

// list returns the files of a commit that matter: rows, and the dataset card.
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
			return nil, &Error{kind: ErrAnswer, Text: fmt.Sprintf("%s has more than %d files", ref, maxFiles), Hint: "download its data yourself, and give --subset the folder"}
		}
		for _, f := range page {
			if f.Type != "file" || (!datasets.IsData(path.Base(f.Path)) && f.Path != cardName) {
				continue
			}
			e, err := f.entry()
			if err != nil {
				return nil, h.nonsense(ref, err.Error())
			}
			if datasets.IsData(f.Path) || f.Path == cardName { // no folder above it is hidden
				found = append(found, e)
			}
		}
		if query = following(header); query == "" {
			return found, nil
		}
	}
	return nil, h.nonsense(ref, "a listing without end")
}

// following is the query of the next page, "" at the last. Of the link only
// the query is taken: a mirror's links may lead to the hub it mirrors.
func following(header http.Header) string {
	for _, link := range header.Values("Link") {
		if m := nextLink.FindStringSubmatch(link); m != nil {
			if u, err := url.Parse(m[1]); err == nil {
				return u.RawQuery
			}
		}
	}
	return ""
}

// file is an entry as the hub writes it.
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
	case f.LFS != nil && !sha256Hx.MatchString(e.sha256), f.LFS == nil && !sha1Hex.MatchString(e.sha1):
		return e, fmt.Errorf("a file without a checksum, %.100q", e.name)
	}
	return e, nil
}

// cardName is the dataset card, which may say what belongs to which split.
const cardName = "README.md"

// getJSON asks until there is an answer.
func (h *Hub) getJSON(ctx context.Context, address string, ref Ref, into any) (http.Header, error) {
	var header http.Header
	err := h.retry(ctx, ref.Repo, func(func()) error {
		resp, err := h.get(ctx, request{url: address, from: api, ref: ref})
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxJSON+1))
		switch {
		case err != nil:
			return err
		case len(body) > maxJSON:
			return h.nonsense(ref, fmt.Sprintf("more than %s", size(maxJSON)))
		case json.Unmarshal(body, into) != nil:
			return h.nonsense(ref, "not the JSON of a hub")
		}
		header = resp.Header
		return nil
	})
	return header, err
}

// nonsense is an answer that no hub gives.
func (h *Hub) nonsense(ref Ref, what string) *Error {
	return &Error{
		kind: ErrAnswer, err: errors.New(what),
		Text: fmt.Sprintf("the answer of %s about %s cannot be used: %s", shown(h.host), ref, what),
		Hint: "check HF_ENDPOINT, and whether a proxy or a login page answers in its place",
	}
}
