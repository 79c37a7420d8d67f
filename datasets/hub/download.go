package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// downloadFile adds a file to the snapshot of a commit, and downloads it unless the cache has
// it undamaged.
func (h *Hub) downloadFile(ctx context.Context, ref Ref, commit string, e entry, m *progressMeter) error {
	unlock, err := h.lock(ctx, ref.Repo, e.blob())
	if err != nil {
		return err
	}
	defer unlock() //nolint:errcheck // the end of the process also unlocks it
	path := h.folder(ref.Repo, "blobs", e.blob())
	if !isIntact(ctx, path, e.blob()) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as in write
			return h.diskError(err, e.size())
		}
		incomplete := path + ".incomplete"
		err := h.get(ctx, ref, h.fileURL(ref, commit, e.Path), func(resp *http.Response) error {
			return h.save(resp.Body, incomplete, ref, e, m)
		})
		if err == nil {
			err = h.diskError(os.Rename(incomplete, path), 0)
		}
		if err != nil {
			_ = os.Remove(incomplete) // the error says why the download failed
			return err
		}
	}
	m.report(e.size(), true)
	m.done += e.size()
	return h.link(ref.Repo, commit, e.Path, e.blob())
}

// fileURL returns the URL of a file; the hub may redirect it.
func (h *Hub) fileURL(ref Ref, commit, name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return fmt.Sprintf("%s/datasets/%s/resolve/%s/%s", h.endpoint, ref.Repo, commit, strings.Join(parts, "/"))
}

// save writes a file and verifies its checksum.
func (h *Hub) save(body io.Reader, path string, ref Ref, e entry, m *progressMeter) error {
	file, err := os.Create(path) //nolint:gosec // a name in the cache
	if err != nil {
		return h.diskError(err, e.size())
	}
	defer file.Close() //nolint:errcheck // the second close, unless there is another error
	sum := newHash(e.blob(), e.size())
	m.current = 0
	n, err := io.Copy(io.MultiWriter(file, sum, m), io.LimitReader(body, e.size()+1))
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return h.diskError(path, e.size())
	}
	switch {
	case err != nil:
		return err
	case n != e.size() || !hasSum(sum, e.blob()):
		return &Error{
			Text:  fmt.Sprintf("%s of %s arrived damaged: its checksum is wrong", printable(e.Path), ref),
			Hint:  "check proxies and HF_ENDPOINT; both downloads failed, and the data was discarded",
			retry: true,
		}
	}
	if err := file.Sync(); err != nil {
		return h.diskError(err, e.size())
	}
	return h.diskError(file.Close(), e.size())
}
