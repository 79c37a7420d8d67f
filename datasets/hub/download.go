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

// blob brings one file into the cache, or finds it there.
func (h *Hub) blob(ctx context.Context, ref Ref, commit string, e entry, m *meter) (File, error) {
	f := File{Name: e.name, Size: e.size, SHA256: e.sha256, Blob: e.blob(), Path: h.folder(ref.Repo, blobsDir, e.blob())}
	m.begin(e.name)
	sum, whole, err := h.whole(ctx, f)
	switch {
	case err != nil:
		return File{}, err
	case whole:
		f.SHA256 = sum
	default:
		d := &download{h: h, ref: ref, entry: e, url: h.fileURL(ref, commit, e.name), path: f.Path, meter: m}
		if err := d.run(ctx); err != nil {
			return File{}, err
		}
		f.SHA256 = hex.EncodeToString(d.sum.Sum(nil))
	}
	m.end(f.Size)
	return f, nil
}

// download is a file on its way. The part that is there, and its checksum so
// far, grow together.
type download struct {
	h     *Hub
	ref   Ref
	entry entry
	url   string
	path  string // of the finished file
	meter *meter

	file     *os.File
	sum, git hash.Hash
	at       int64 // bytes that are there, all of them hashed
	furthest int64 // that at ever was: more is progress
	spoiled  bool  // it was wrong once, and began anew
}

func (d *download) run(ctx context.Context) error {
	partial := d.path + partialEnd
	var err error
	if d.file, err = os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o644); err != nil { //nolint:gosec // as in record
		return d.disk(err)
	}
	defer d.file.Close() //nolint:errcheck // finish has closed it, or it is not finished
	if err := d.resume(); err != nil {
		return err
	}
	if err := d.h.retry(ctx, d.ref.Repo, func(progressed func()) error { return d.try(ctx, progressed) }); err != nil {
		return err
	}
	return d.finish(partial)
}

// resume hashes what an earlier mini left: its length says nothing of whether
// it was written to the disk.
func (d *download) resume() error {
	d.reset()
	info, err := d.file.Stat()
	if err != nil {
		return d.disk(err)
	}
	if info.Size() > d.entry.size {
		return d.restart()
	}
	d.at, err = io.Copy(io.MultiWriter(d.sum, d.git), d.file)
	d.furthest = d.at
	d.meter.at(d.at, true)
	return d.disk(err)
}

func (d *download) reset() {
	d.at, d.sum, d.git = 0, sha256.New(), gitHash(d.entry.size)
}

// restart drops what is there.
func (d *download) restart() error {
	d.reset()
	if err := d.file.Truncate(0); err != nil {
		return d.disk(err)
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return d.disk(err)
}

func (d *download) disk(err error) error { return d.h.diskError(err, d.entry.size-d.at) }

// try brings what is missing, in one request, and checks the whole.
func (d *download) try(ctx context.Context, progressed func()) error {
	if d.at < d.entry.size {
		if err := d.pull(ctx, progressed); err != nil {
			return err
		}
	}
	return d.check()
}

func (d *download) pull(ctx context.Context, progressed func()) error {
	resp, err := d.h.get(ctx, request{url: d.url, from: d.at, ref: d.ref, accept: []int{http.StatusRequestedRangeNotSatisfiable}})
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it is wanted
	expected := d.entry.size - d.at
	switch {
	case resp.StatusCode == http.StatusPartialContent && resp.Header.Get("Content-Range") == d.span():
	case resp.StatusCode == http.StatusOK:
		if d.at > 0 { // the server gives no parts
			if err := d.restart(); err != nil {
				return err
			}
		}
		expected = d.entry.size
	default:
		if err := d.restart(); err != nil {
			return err
		}
		return d.fault(fmt.Sprintf("the hub answers %d to the request for the rest of a file", resp.StatusCode))
	}
	if resp.ContentLength >= 0 && resp.ContentLength != expected {
		return d.spoil(fmt.Sprintf("%d bytes came where %d were to come", resp.ContentLength, expected))
	}
	return d.copy(resp.Body, progressed)
}

// span is the Content-Range of the part that is missing.
func (d *download) span() string {
	return fmt.Sprintf("bytes %d-%d/%d", d.at, d.entry.size-1, d.entry.size)
}

func (d *download) copy(body io.Reader, progressed func()) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if int64(n) > d.entry.size-d.at {
			return d.spoil("it is longer than the hub says")
		}
		written, werr := d.file.Write(buf[:n])
		d.sum.Write(buf[:written])
		d.git.Write(buf[:written])
		d.at += int64(written)
		if werr != nil {
			return d.disk(werr)
		}
		if d.at > d.furthest {
			d.furthest = d.at
			progressed()
		}
		d.meter.at(d.at, false)
		switch {
		case errors.Is(err, io.EOF) && d.at < d.entry.size:
			return d.fault("the connection ended early")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (d *download) fault(why string) error {
	return &fault{err: &Error{
		kind: ErrUnreachable, Text: fmt.Sprintf("%s of %s could not be downloaded: %s", shown(d.entry.name), d.ref, why),
		Hint: "run it again, which goes on where it stopped",
	}}
}

// check compares the whole with what the hub says of it.
func (d *download) check() error {
	got, want := hex.EncodeToString(d.sum.Sum(nil)), d.entry.sha256
	if want == "" {
		got, want = hex.EncodeToString(d.git.Sum(nil)), d.entry.sha1
	}
	if got == want {
		return nil
	}
	return d.spoil("its checksum is wrong")
}

// spoil begins anew, once: a part from another time, or a proxy's mistake, is
// cured by that.
func (d *download) spoil(why string) error {
	if err := d.restart(); err != nil {
		return err
	}
	e := &Error{
		kind: ErrCorrupt, Text: fmt.Sprintf("%s of %s arrived damaged: %s", shown(d.entry.name), d.ref, why),
		Hint: "check proxies and HF_ENDPOINT; it was tried twice, and nothing was kept",
	}
	if d.spoiled {
		_ = os.Remove(d.file.Name()) // it is empty
		return e
	}
	d.spoiled, d.furthest = true, 0
	return &fault{err: e}
}

// finish gives the file its name, once its bytes are on the disk.
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
		_ = dir.Sync() // not every system can; the file is looked at again when it is opened
		_ = dir.Close()
	}
	return nil
}
