package registrytest

import (
	"archive/tar"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Layer returns a unique layer with one incompressible file of the given size in bytes.
func Layer(t testing.TB, bytes int) v1.Layer {
	t.Helper()
	content := make([]byte, bytes)
	source := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), rand.Uint64())) //nolint:gosec // no secret
	for i := range content {
		content[i] = byte(source.Uint32())
	}
	return Files(t, map[string][]byte{"content": content})
}

// Files returns a layer with these files, all executable.
func Files(t testing.TB, files map[string][]byte) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil },
		tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Image returns an image of these layers for an architecture; empty means this
// machine's.
func Image(t testing.TB, arch string, layers ...v1.Layer) v1.Image {
	t.Helper()
	if arch == "" {
		arch = runtime.GOARCH
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// Push pushes an image to the registry directly, and returns its name at the proxy.
func (r *Registry) Push(t testing.TB, repository string, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(r.direct + "/" + repository + ":latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithContext(t.Context()), transport(t)); err != nil {
		t.Fatal(err)
	}
	return r.Host + "/" + repository + ":latest"
}

// PushIndex pushes a multi-platform image with the given images, by architecture, and
// returns its name at the proxy.
func (r *Registry) PushIndex(t testing.TB, repository string, images map[string]v1.Image) string {
	t.Helper()
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.DockerManifestList)
	for arch, img := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	ref, err := name.ParseReference(r.direct + "/" + repository + ":latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(t.Context()), transport(t)); err != nil {
		t.Fatal(err)
	}
	return r.Host + "/" + repository + ":latest"
}

// transport returns a transport whose connections are closed after the test.
func transport(t testing.TB) remote.Option {
	own := remote.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck // it is an *http.Transport
	t.Cleanup(own.CloseIdleConnections)
	return remote.WithTransport(own)
}
