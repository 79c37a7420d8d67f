package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// blob returns the file of an entry in the cache, and downloads it if necessary.
func (h *Hub) blob(ctx context.Context, ref Ref, commit string, e entry, m *progressMeter) (File, error) {
	f := File{Name: e.name, Size: e.size, SHA256: e.sha256, Blob: e.blob(), Path: h.folder(ref.Repo, blobsDir, e.blob())}
	m.startFile(e.name)
	sum, intact, err := h.checkFile(ctx, f)
	switch {
	case err != nil:
		return File{}, err
	case intact:
		f.SHA256 = sum
	default:
		d := &download{h: h, ref: ref, entry: e, url: h.fileURL(ref, commit, e.name), path: f.Path, meter: m}
		if err := d.run(ctx); err != nil {
			return File{}, err
		}
		f.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	}
	m.finishFile(f.Size)
	return f, nil
}

// download is the download of a file. The partial file and its checksums grow together.
type download struct {
	h     *Hub
	ref   Ref
	entry entry
	url   string
	path  string // of the complete file
	meter *progressMeter

	file      *os.File
	sum, git  hash.Hash
	offset    int64 // bytes downloaded and hashed
	maxOffset int64 // the largest offset so far; only an offset beyond it counts as progress
	restarted bool  // the download was restarted because of wrong data
}

func (d *download) run(ctx context.Context) error {
	partial := d.path + partialSuffix
	var err error
	if d.file, err = os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o644); err != nil { //nolint:gosec // as in record
		return d.disk(err)
	}
	defer d.file.Close() //nolint:errcheck // finish closes it and reports the error
	if err := d.resume(); err != nil {
		return err
	}
	if err := d.h.retry(ctx, d.ref.Repo, func(progressed func()) error { return d.attempt(ctx, progressed) }); err != nil {
		return err
	}
	return d.finish(partial)
}

// resume hashes the partial file of an earlier process. The data of the file may be incomplete
// even if the size is right.
func (d *download) resume() error {
	d.reset()
	info, err := d.file.Stat()
	if err != nil {
		return d.disk(err)
	}
	if info.Size() > d.entry.size {
		return d.restart()
	}
	d.offset, err = io.Copy(io.MultiWriter(d.sum, d.git), d.file)
	d.maxOffset = d.offset
	d.meter.report(d.offset, true)
	return d.disk(err)
}

func (d *download) reset() {
	d.offset, d.sum, d.git = 0, sha256.New(), gitHash(d.entry.size)
}

// restart empties the partial file.
func (d *download) restart() error {
	d.reset()
	if err := d.file.Truncate(0); err != nil {
		return d.disk(err)
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return d.disk(err)
}

func (d *download) disk(err error) error { return d.h.diskError(err, d.entry.size-d.offset) }

// attempt downloads the missing part with one request and verifies the checksum.
func (d *download) attempt(ctx context.Context, progressed func()) error {
	if d.offset < d.entry.size {
		if err := d.fetchRange(ctx, progressed); err != nil {
			return err
		}
	}
	return d.check()
}

func (d *download) fetchRange(ctx context.Context, progressed func()) error {
	resp, err := d.h.get(ctx, request{url: d.url, from: d.offset, ref: d.ref, accept: []int{http.StatusRequestedRangeNotSatisfiable}})
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // the rest of the body is not needed
	expected := d.entry.size - d.offset
	switch {
	case resp.StatusCode == http.StatusPartialContent && resp.Header.Get("Content-Range") == d.contentRange():
	case resp.StatusCode == http.StatusOK:
		if d.offset > 0 { // the server does not support ranges
			if err := d.restart(); err != nil {
				return err
			}
		}
		expected = d.entry.size
	default:
		if err := d.restart(); err != nil {
			return err
		}
		return d.transientErr(fmt.Sprintf("the hub answers %d to a range request", resp.StatusCode))
	}
	if resp.ContentLength >= 0 && resp.ContentLength != expected {
		return d.restartOnce(fmt.Sprintf("received %d bytes instead of %d", resp.ContentLength, expected))
	}
	return d.copy(resp.Body, progressed)
}

// contentRange returns the expected Content-Range header for the missing part.
func (d *download) contentRange() string {
	return fmt.Sprintf("bytes %d-%d/%d", d.offset, d.entry.size-1, d.entry.size)
}

func (d *download) copy(body io.Reader, progressed func()) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if int64(n) > d.entry.size-d.offset {
			return d.restartOnce("it is longer than the hub reported")
		}
		written, writeErr := d.file.Write(buf[:n])
		d.sum.Write(buf[:written])
		d.git.Write(buf[:written])
		d.offset += int64(written)
		if writeErr != nil {
			return d.disk(writeErr)
		}
		if d.offset > d.maxOffset {
			d.maxOffset = d.offset
			progressed()
		}
		d.meter.report(d.offset, false)
		switch {
		case errors.Is(err, io.EOF) && d.offset < d.entry.size:
			return d.transientErr("the connection ended early")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *download) transientErr(why string) error {
	return &transientError{err: &Error{
		kind: ErrUnreachable, Text: fmt.Sprintf("cannot download %s of %s: %s", printable(d.entry.name), d.ref, why),
		Hint: "run the command again; it resumes the download",
	}}
}

// check compares the checksum with the one from the hub.
func (d *download) check() error {
	got, want := hex.EncodeToString(d.sum.Sum(nil)), d.entry.sha256
	if want == "" {
		got, want = hex.EncodeToString(d.git.Sum(nil)), d.entry.sha1
	}
	if got == want {
		return nil
	}
	return d.restartOnce("its checksum is wrong")
}

// restartOnce discards wrong data. The first time it returns a *transientError, so that the
// download is repeated: this helps if the partial file was outdated, or a proxy changed the
// data. The second time it returns a permanent error.
func (d *download) restartOnce(why string) error {
	if err := d.restart(); err != nil {
		return err
	}
	e := &Error{
		kind: ErrCorrupt, Text: fmt.Sprintf("%s of %s arrived damaged: %s", printable(d.entry.name), d.ref, why),
		Hint: "check proxies and HF_ENDPOINT; both downloads failed, and the data was discarded",
	}
	if d.restarted {
		_ = os.Remove(d.file.Name()) // it is empty now
		return e
	}
	d.restarted, d.maxOffset = true, 0
	return &transientError{err: e}
}

// finish syncs the file and gives it its final name.
func (d *download) finish(partial string) error {
	if err := d.file.Sync(); err != nil {
		return d.disk(err)
	}
	if err := d.file.Close(); err != nil {
		return d.disk(err)
	}
	if err := os.Rename(partial, d.path); err != nil {
		return d.disk(err)
	}
	if dir, err := os.Open(filepath.Dir(d.path)); err == nil {
		_ = dir.Sync() // not every system supports it; opening the dataset checks the files
		_ = dir.Close()
	}
	return nil
}
