//go:build kubernetes

package kubernetes

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/minibench/mini/env/helper/pod"
)

// WriteHelperImage writes an image with the helper as a tar file that docker load, crane
// push and ctr images import read, for nodes of an architecture ("amd64" or "arm64").
// The helper comes from dir; "" means the embedded one. It returns the tag of the image,
// which contains the start of the helper's hash: another helper has another tag, so a
// node does not use an old one. The bytes depend on the helper only.
func WriteHelperImage(w io.Writer, dir, arch string) (tag string, err error) {
	binary, hash, err := loadHelper(dir, arch)
	if err != nil {
		return "", err
	}
	img, err := helperImage(binary, arch)
	if err != nil {
		return "", fmt.Errorf("make helper image: %w", err)
	}
	ref, err := name.NewTag("mini-helper:" + arch + "-" + hash[:16])
	if err != nil {
		return "", fmt.Errorf("make helper image: %w", err)
	}
	if err := tarball.Write(ref, img, w); err != nil {
		return "", fmt.Errorf("write helper image: %w", err)
	}
	return ref.String(), nil
}

// helperImage returns an image with nothing but the helper. addHelper runs it as an init
// container.
func helperImage(binary []byte, arch string) (v1.Image, error) {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: pod.Binary, Mode: 0o755, Size: int64(len(binary))}); err != nil {
		return nil, err
	}
	if _, err := files.Write(binary); err != nil {
		return nil, err
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil },
		tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint = []string{"/" + pod.Binary}
	return mutate.ConfigFile(img, config)
}
