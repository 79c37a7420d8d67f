package dockertest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/docker/docker/api/types/image"
	"golang.org/x/sys/unix"
)

// SmallImage is the only image of a Daemon: this machine's bash and a few other
// programs, about 5 MB. It is small enough for a daemon without an efficient storage
// driver or with little disk space.
const SmallImage = "mini-small:latest"

// smallPrograms are the programs in SmallImage.
var smallPrograms = []string{"bash", "sleep", "cat", "head", "dd", "rm", "tr", "mkdir", "true", "echo", "uname"}

// loadImage imports SmallImage into the daemon.
func (d *Daemon) loadImage() {
	d.t.Helper()
	content, err := smallImageTar()
	if err != nil {
		missing(d.t, "a small image cannot be made of this machine's programs: %v", err)
	}
	c := d.Client()
	defer c.Close() //nolint:errcheck // the error of the import matters
	progress, err := c.ImageImport(d.t.Context(), image.ImportSource{Source: bytes.NewReader(content), SourceName: "-"}, SmallImage, image.ImportOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer progress.Close() //nolint:errcheck // it was read to its end
	var output bytes.Buffer
	if _, err := output.ReadFrom(progress); err != nil {
		d.t.Fatal(err)
	}
	if _, err := c.ImageInspect(d.t.Context(), SmallImage); err != nil {
		d.t.Fatalf("the small image was not imported: %v; %s", err, output.String())
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
	for library := range libraries {
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
