package dockertest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

// SmallImage is the only image of a Daemon: this machine's bash, sh and a few other
// programs, about 5 MB. It is small enough for a daemon without an efficient storage
// driver or with little disk space.
const SmallImage = "mini-small:latest"

// smallPrograms are the programs in SmallImage.
var smallPrograms = []string{"bash", "sh", "sleep", "cat", "head", "dd", "rm", "tr", "mkdir", "true", "echo", "uname"}

// loadImage imports SmallImage into the daemon.
func (d *Daemon) loadImage() {
	d.t.Helper()
	content, err := smallImageTar()
	if err != nil {
		missing(d.t, "a small image cannot be made of this machine's programs: %v", err)
	}
	c := d.Client()
	defer c.Close() //nolint:errcheck // the error of the import matters
	importImage(d.t, c, content, SmallImage)
}

// Small returns the name of a local image with the content of SmallImage. Images made
// from it are small, too, so that the engine makes them in less than a second.
func Small(t testing.TB) string {
	t.Helper()
	c := Client(t)
	content, err := smallImageTar()
	if err != nil {
		missing(t, "a small image cannot be made of this machine's programs: %v", err)
	}
	sum := sha256.Sum256(content)
	ref := "mini-small:" + hex.EncodeToString(sum[:6])
	if _, err := c.ImageInspect(t.Context(), ref); err != nil {
		importImage(t, c, content, ref)
	}
	return ref
}

func importImage(t testing.TB, c *client.Client, content []byte, ref string) {
	t.Helper()
	progress, err := c.ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(content), SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer progress.Close() //nolint:errcheck // it was read to its end
	var output bytes.Buffer
	if _, err := output.ReadFrom(progress); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ImageInspect(t.Context(), ref); err != nil {
		t.Fatalf("the image %s was not imported: %v; %s", ref, err, output.String())
	}
}

var absolutePath = regexp.MustCompile(`/[^ )]+`)

// smallImageTar returns the content of SmallImage as a tar file.
var smallImageTar = sync.OnceValues(func() ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	put := func(source, name string) error {
		b, err := os.ReadFile(source) //nolint:gosec // programs and libraries of this machine
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(b))}); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	libraries := map[string]bool{}
	for _, name := range smallPrograms {
		program, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		if err := put(program, "bin/"+name); err != nil {
			return nil, err
		}
		lddOutput, err := exec.Command("ldd", program).CombinedOutput() //nolint:gosec // found on the PATH, and quick
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w: %s", program, err, lddOutput)
		}
		for _, library := range absolutePath.FindAllString(string(lddOutput), -1) {
			if library != program {
				libraries[library] = true
			}
		}
	}
	for _, library := range slices.Sorted(maps.Keys(libraries)) { // always in the same order, for the hash
		if err := put(library, filepath.Clean(library)[1:]); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: unix.S_ISVTX | 0o777}); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
})
