//go:build kubernetes

package kubernetes

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/minibench/mini/env/helper/binaries"
)

func TestHelperImage(t *testing.T) {
	dir, binary := t.TempDir(), []byte("a helper")
	if err := os.WriteFile(filepath.Join(dir, binaries.Name("arm64")), binary, 0o600); err != nil {
		t.Fatal(err)
	}
	var file, again bytes.Buffer
	tag, err := WriteHelperImage(&file, dir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := WriteHelperImage(&again, dir, "arm64"); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Errorf("the second image differs, or %v", err)
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }, &ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/h" {
		t.Errorf("%+v", config)
	}
	files := tar.NewReader(mutate.Extract(img))
	h, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != "h" || h.Mode != 0o755 || !bytes.Equal(content, binary) {
		t.Errorf("%+v with %q", h, content)
	}
	if _, err := files.Next(); err != io.EOF {
		t.Errorf("another file: %v", err)
	}
}
