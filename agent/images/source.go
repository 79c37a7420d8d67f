package images

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minibench/mini/model"
)

// Fetcher fetches an http or https URL, at most MaxBytes+1 bytes of it.
type Fetcher interface {
	Fetch(ctx context.Context, url string) ([]byte, error)
}

// Source loads the images of rows. The zero value supports only data URIs.
type Source struct {
	// Folder holds images by the names in the rows. An image with a URL is
	// stored as host/path, without port and query ("wget -x" adds these).
	Folder string
	// Fetcher fetches URLs that are not in Folder; if nil, none is fetched.
	Fetcher Fetcher
}

// Load returns the image that ref names. The error is a short reason why it
// cannot be loaded.
func (s Source) Load(ctx context.Context, ref string) (model.Image, error) {
	if rest, ok := strings.CutPrefix(ref, "data:"); ok {
		return decodeDataURI(rest)
	}
	u, err := url.Parse(ref)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if err != nil || !isURL && u.Scheme != "" {
		return model.Image{}, errors.New("neither a file nor an http, https or data URI")
	}
	name := ref
	if isURL {
		name = path.Join(u.Hostname(), u.Path)
	}
	data, err := s.readFile(name)
	switch {
	case err == nil:
		return Decode(data)
	case !errors.Is(err, fs.ErrNotExist):
		return model.Image{}, err
	case !isURL && s.Folder == "":
		return model.Image{}, errors.New("agent.images.folder is not set")
	case !isURL:
		return model.Image{}, errors.New("not in the image folder")
	case s.Fetcher == nil:
		return model.Image{}, errors.New("not fetched: agent.images.fetch is false")
	}
	if data, err = s.Fetcher.Fetch(ctx, ref); err != nil {
		return model.Image{}, err
	}
	return Decode(data)
}

// readFile reads a file of the folder. The name is untrusted; a file outside
// the folder is not read.
func (s Source) readFile(name string) ([]byte, error) {
	if s.Folder == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(s.Folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.New("cannot be read from the image folder")
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return data, nil
}

// decodeDataURI decodes "image/png;base64,...", the part after "data:".
func decodeDataURI(rest string) (model.Image, error) {
	head, body, ok := strings.Cut(rest, ",")
	if !ok || !strings.HasSuffix(head, ";base64") {
		return model.Image{}, errors.New("a data URI that is not base64")
	}
	if base64.StdEncoding.DecodedLen(len(body)) > MaxBytes+3 {
		return model.Image{}, fmt.Errorf("larger than %d MB", MaxBytes>>20)
	}
	data, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return model.Image{}, errors.New("a data URI that is not base64")
	}
	return Decode(data)
}
