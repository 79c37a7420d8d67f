package pictures

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
	"sync"

	"github.com/minibench/mini/model"
)

// Fetcher gets what is behind an http or https URL, at most MaxBytes+1 of it.
type Fetcher interface {
	Fetch(ctx context.Context, url string) ([]byte, error)
}

// Source is where the images of rows come from. Of the zero value only data
// URIs do.
type Source struct {
	// Folder holds images by the names that rows give them; those that are URLs
	// as host/path, which is how "wget -x" lays them down.
	Folder string
	// Fetcher fetches URLs that Folder does not have; nil for none.
	Fetcher Fetcher
}

// Got is an image, or in few words why there is none.
type Got struct {
	Image model.Image
	Err   error
}

// All gets images side by side, and returns them in their order.
func (s Source) All(ctx context.Context, refs []string) []Got {
	all := make([]Got, len(refs))
	var getting sync.WaitGroup
	for i, ref := range refs {
		getting.Go(func() { all[i].Image, all[i].Err = s.Get(ctx, ref) })
	}
	getting.Wait()
	return all
}

// Get returns an image. The error says in few words why there is none.
func (s Source) Get(ctx context.Context, ref string) (model.Image, error) {
	if rest, ok := strings.CutPrefix(ref, "data:"); ok {
		return fromData(rest)
	}
	u, err := url.Parse(ref)
	isURL := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if err != nil || !isURL && u.Scheme != "" {
		return model.Image{}, errors.New("neither a file, nor http, https or data")
	}
	name := ref
	if isURL {
		name = path.Join(u.Hostname(), u.Path)
	}
	data, err := s.read(name)
	switch {
	case err == nil:
		return New(data)
	case !errors.Is(err, fs.ErrNotExist):
		return model.Image{}, err
	case !isURL && s.Folder == "":
		return model.Image{}, errors.New("no folder of images is named (agent.images.folder)")
	case !isURL:
		return model.Image{}, errors.New("not in the folder of images")
	case s.Fetcher == nil:
		return model.Image{}, errors.New("images are not fetched (agent.images.fetch)")
	}
	if data, err = s.Fetcher.Fetch(ctx, ref); err != nil {
		return model.Image{}, err
	}
	return New(data)
}

// read never leaves the folder: names are the dataset's.
func (s Source) read(name string) ([]byte, error) {
	if s.Folder == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(s.Folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.New("it cannot be read from the folder of images")
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	return data, nil
}

// fromData reads "image/png;base64,...", without the scheme before it.
func fromData(rest string) (model.Image, error) {
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
	return New(data)
}
