package tampering

import (
	_ "embed" // for the names of modules
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
)

// standardModules has the names of the modules of Python's standard library, of the versions
// 3.6 to 3.13.
//
//go:embed modules.txt
var standardModules string

// runnerModules has the names of Python's test runners and plugins, and of the modules that
// they and the installation of a repository import.
const runnerModules = `pytest _pytest pluggy unittest nose iniconfig packaging exceptiongroup tomli toml py attr attrs
	pygments colorama more_itertools wcwidth typing_extensions importlib_metadata zipp six xdist execnet coverage
	pytest_cov hypothesis tox setuptools pkg_resources _distutils_hack wheel pip asgiref sqlparse pytz mpmath`

var moduleNames = sync.OnceValue(func() map[string]Flag {
	names := map[string]Flag{}
	for _, name := range strings.Fields(standardModules) {
		names[name] = ShadowsModule
	}
	for _, name := range strings.Fields(runnerModules) {
		names[name] = ShadowsRunner
	}
	return names
})

// moduleSuffix matches the suffix of a Python module.
var moduleSuffix = lazyregexp.New(`^(?:py|pyc|(?:[\w-]+\.)?so)$`)

// shadowedModule returns the flag of a file that Python may import instead of a module of its
// standard library or of the test runner; it returns "" for other files. Python looks for modules
// in the roots; a link may lead to a package. The modules of pytest's repository and the row's own package are no shadows.
func shadowedModule(name string, s section, roots []string, in datasets.Instance) Flag {
	if s.isLink() {
		name += "/__init__.py"
	}
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	stem, suffix, _ := strings.Cut(base, ".")
	switch {
	case !moduleSuffix.MatchString(suffix):
		return ""
	case stem == "__init__":
		dir, stem = path.Split(dir)
		dir = path.Clean(dir)
	}
	flag := moduleNames()[stem]
	if !slices.Contains(roots, dir) || stem == path.Base(in.Repo) || flag == ShadowsRunner && in.Repo == pytestRepo {
		return ""
	}
	return flag
}

// importRoots returns the folders in which Python looks for modules: those of the repository's
// packages, of the programs and files of the test commands, and of the test files.
func importRoots(files ...map[string]bool) []string {
	roots := []string{".", "src", "lib"}
	for _, set := range files {
		for name := range set {
			roots = append(roots, path.Dir(name))
		}
	}
	return roots
}
