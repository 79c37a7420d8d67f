package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/minibench/mini/"

// layers lists which folders of mini each folder may import. A row applies to its
// folder and to all folders below it, unless these have a row of their own. A folder
// may always import itself and the folders below it. A row names only rows above it.
var layers = []struct {
	folder  string
	allowed string // separated by spaces
}{
	{"internal", ""},
	{"env", "internal"},
	{"model", "internal"},
	{"trajectories", "internal model"},
	{"datasets", "internal"},
	{"datasets/harbor", "internal datasets env"},
	{"agent", "internal env model trajectories"},
	{"configs", "internal env model trajectories agent"},
	{"datasets/open", "internal datasets datasets/harbor configs"},
	{"model/open", "internal model trajectories datasets agent configs"},
	{"env/open", "internal env model trajectories datasets datasets/harbor agent configs datasets/open"},
	{"runner", "internal env model trajectories datasets datasets/harbor agent"},
	{"runner/source", "internal trajectories datasets runner"},
	{"runner/rewards", "internal model trajectories datasets runner runner/source"},
	{"runner/setup", "internal env model trajectories datasets datasets/harbor agent configs runner datasets/open model/open env/open"},
	{"examples", "internal env model trajectories datasets agent configs runner runner/source datasets/open model/open env/open runner/setup"},
	{"cmd/mini-helper", "internal env"},
	{"cmd/mini", "internal env model trajectories datasets datasets/harbor agent configs runner runner/source runner/rewards datasets/open model/open env/open runner/setup"},
}

// roots are the packages with the types and interfaces that all others use. They
// import only the standard library and mini's internal packages.
var roots = []string{"env", "model"}

// sandboxPackages run inside sandboxes. They may depend only on the standard library
// and golang.org/x/sys.
var sandboxPackages = []string{"cmd/mini-helper", "env", "env/process", "env/files", "env/helper", "env/helper/server", "env/helper/minitool", "env/helper/link", "env/helper/sockets", "env/helper/pod", "env/helper/repository", "env/helper/program"}

// clients maps large libraries to the only packages that may import them.
var clients = map[string][]string{
	"github.com/docker/docker":           {"env/docker", "cmd/mini/internal/system/doctor", "env/kubernetes"},
	"k8s.io/":                            {"env/kubernetes", "env/open", "cmd/mini/internal/system/doctor"},
	"github.com/sashabaranov/go-openai":  {"model/openai"},
	"github.com/modelcontextprotocol/go": {"agent/tools/mcp"},
}

type goPackage struct {
	ImportPath, ForTest string
	Imports, Deps       []string
}

func TestImports(t *testing.T) {
	for _, p := range goList(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		row := layerOf(name)
		if row < 0 {
			t.Errorf("%s is in no folder of the table", name)
			continue
		}
		allowed := strings.Fields(layers[row].allowed)
		for _, imported := range p.Imports {
			ours, isOurs := strings.CutPrefix(imported, module)
			switch {
			case isOurs && slices.Contains(roots, name) && !within(ours, "internal"):
				t.Errorf("%s imports %s: a root imports the standard library only", name, ours)
			case isOurs && within(ours, "cmd/mini/internal/web/webtest"):
				t.Errorf("%s imports %s, which is for tests", name, ours)
			case isOurs && ours != name && layerOf(ours) != row && !slices.Contains(allowed, layers[layerOf(ours)].folder):
				t.Errorf("%s imports %s, which its row does not name", name, ours)
			}
			for client, users := range clients {
				if strings.HasPrefix(imported, client) && !slices.ContainsFunc(users, func(u string) bool { return within(name, u) }) {
					t.Errorf("%s imports %s, which belongs in %v", name, imported, users)
				}
			}
		}
		if slices.Contains(sandboxPackages, name) {
			for _, d := range p.Deps {
				if strings.Contains(strings.Split(d, "/")[0], ".") && !strings.HasPrefix(d, module) && !strings.HasPrefix(d, "golang.org/x/sys") {
					t.Errorf("%s depends on %s: it is for the standard library only", name, d)
				}
			}
		}
	}
}

// TestLayersPointUp checks that a row names only rows above it, which excludes import
// cycles of folders.
func TestLayersPointUp(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range layers {
		for f := range strings.FieldsSeq(l.allowed) {
			if !seen[f] {
				t.Errorf("%s names %s, which is not above it", l.folder, f)
			}
		}
		seen[l.folder] = true
	}
}

// layerOf returns the index of the row of a package, or -1.
func layerOf(name string) int {
	best := -1
	for i, l := range layers {
		if within(name, l.folder) && (best < 0 || len(l.folder) > len(layers[best].folder)) {
			best = i
		}
	}
	return best
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

func goList(t *testing.T) (all []goPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags=full,kubernetes", "-json=ImportPath,ForTest,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
