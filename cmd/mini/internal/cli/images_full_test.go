//go:build full

package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minibench/mini/env/docker/dockertest"
	"github.com/minibench/mini/env/docker/registrytest"
)

// TestImagesScripts runs the scripts about images. They pull from a registry on
// loopback that rejects the first request for one of the images. The images contain
// only bash.
func TestImagesScripts(t *testing.T) {
	c := dockertest.Client(t)
	r := registrytest.Start(t)
	shared := registrytest.Files(t, bashFiles(t))
	var rows strings.Builder
	var refs []string
	for i := range 4 {
		ref := r.Push(t, fmt.Sprintf("mini-test/bench-%d", i), registrytest.Image(t, "", shared, registrytest.Layer(t, 1<<20)))
		refs = append(refs, ref)
		fmt.Fprintf(&rows, `{"instance_id":"row-%d","problem_statement":"p","image":%q}`+"\n", i, ref)
	}
	foreign := r.Push(t, "mini-test/foreign", registrytest.Image(t, "s390x", shared))
	registrytest.RemoveOnCleanup(t, c, append(refs, foreign)...)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rows.jsonl": rows.String(),
		"foreign.jsonl": fmt.Sprintf(`{"instance_id":"foreign","problem_statement":"p","image":%q}`+"\n", foreign) +
			fmt.Sprintf(`{"instance_id":"none","problem_statement":"p","image":"%s/mini-test/none:1"}`+"\n", r.Host),
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var limited atomic.Int32
	r.Inject(func(q *http.Request) *registrytest.Fault {
		if strings.Contains(q.URL.Path, "/bench-1/manifests/") && limited.Add(1) == 1 {
			return &registrytest.Fault{Status: 429, Header: map[string]string{"Retry-After": "2"}}
		}
		return nil
	})
	scripts(t, "testdata/full/images", map[string]string{
		"ROWS": dir + "/rows.jsonl", "FOREIGN": dir + "/foreign.jsonl", "HELPER": dockertest.HelperDir(t),
		"REGISTRY": r.Host,
	})
}

// library matches a path in the output of ldd.
var library = regexp.MustCompile(`/\S+`)

// bashFiles returns the files of this machine's bash and of the libraries that it is linked
// with.
func bashFiles(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", "/bin/bash").Output()
	if err != nil {
		t.Skipf("no bash to make an image of: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range append(library.FindAllString(string(out), -1), "/bin/bash") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(path, "/")] = content
	}
	return files
}
