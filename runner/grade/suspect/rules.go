package suspect

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// rule is one kind of suspicious file.
type rule struct {
	flag Flag
	why  string
	file func(name string) bool
	// lines looks closer at a file that has other uses too; nil means that
	// every change counts.
	lines func(section) bool
}

func (r rule) applies(name string, s section) bool {
	return r.file(name) && (r.lines == nil || r.lines(s))
}

var rules = []rule{
	{Outside, "the name leads out of the repository", func(name string) bool {
		return path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../")
	}, nil},
	{GitHook, "git may run it, or is told by it what to run", func(name string) bool {
		return within(name, ".git", ".githooks", ".husky")
	}, nil},
	{CI, "tells a service how to test", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		return slices.Contains([]string{
			".github", ".circleci", ".gitlab-ci.yml", ".travis.yml", ".buildkite",
			"azure-pipelines.yml", "appveyor.yml", ".appveyor.yml", "Jenkinsfile",
		}, top)
	}, nil},
	{StartupHook, "Python runs it whenever it starts", func(name string) bool {
		return within(name, "sitecustomize", "usercustomize") || based(name, "sitecustomize.*", "usercustomize.*", "*.pth")
	}, nil},
	{ShadowsRunner, "Python may take it for the test runner", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		if stem, suffix, ok := strings.Cut(top, "."); ok && moduleSuffix.MatchString(suffix) {
			top = stem
		}
		return slices.Contains([]string{"pytest", "_pytest", "pluggy", "unittest", "nose"}, top)
	}, nil},
	{TestSetup, "the test runner loads it before the tests", func(name string) bool {
		return based(name, "conftest.py", "spec_helper.rb", "rails_helper.rb", "test_helper.rb",
			"setupTests.*", "jest.setup.*", "jest-setup.*", "vitest.setup.*", "karma.setup.*") ||
			isTesting(name) && based(name, "__init__.py", "bootstrap.php", "helper.rb", "setup.js", "setup.ts")
	}, nil},
	{TestSetup, "pytest loads the plugins that it names", func(name string) bool {
		dir := path.Dir(name)
		return based(name, "entry_points.txt") && (strings.HasSuffix(dir, ".egg-info") || strings.HasSuffix(dir, ".dist-info"))
	}, nil},
	{TestSetup, "has what Go runs before the tests", func(name string) bool {
		return based(name, "*_test.go")
	}, changes(goSetup)},
	{SetupScript, "the evaluation runs it to install the repository", func(name string) bool {
		return name == "setup.py"
	}, nil},
	{SetupScript, "cargo runs it before the tests", func(name string) bool {
		return based(name, "build.rs")
	}, nil},
	{TestConfig, "says how tests are found and run", func(name string) bool {
		return based(name, "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
			"jest.config.*", "vitest.config.*", "vitest.workspace.*", "karma.conf.*", "karma.config.*",
			".mocharc*", "mocha.opts", "jasmine.json", "ava.config.*", ".nycrc*",
			"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", ".rspec", ".rspec-local",
			"testng.xml", "junit-platform.properties",
			"CTestCustom.cmake", "CTestConfig.cmake", "nextest.toml", "go.work") ||
			within(name, ".mvn", ".bundle") ||
			strings.HasSuffix("/"+name, "/.cargo/config") || strings.HasSuffix("/"+name, "/.cargo/config.toml")
	}, nil},
	{TestConfig, "changes what it says about tests", func(name string) bool {
		return based(name, "setup.cfg", "pyproject.toml")
	}, aboutPytest},
	{TestConfig, "changes scripts, or what it says about a test runner", func(name string) bool {
		return based(name, "package.json", "composer.json")
	}, aboutScripts},
	{TestConfig, "changes how tests are run", func(name string) bool {
		return based(name, "pom.xml", "build.xml", "*.gradle", "*.gradle.kts")
	}, changes(javaTests)},
	{TestConfig, "changes how tests are run", func(name string) bool {
		return based(name, "Cargo.toml")
	}, changes(cargoTests)},
	{TestConfig, "puts something in the place of a module", func(name string) bool {
		return based(name, "go.mod")
	}, changes(goReplaces)},
	{TestConfig, "says what Ruby loads with the tests", func(name string) bool {
		return based(name, "Gemfile", "Gemfile.local", "gems.rb")
	}, nil},
	{TestConfig, "changes a task about tests", func(name string) bool {
		return based(name, "Rakefile", "Makefile", "GNUmakefile", "makefile", "Makefile.am", "Makefile.in", "CMakeLists.txt",
			"Gruntfile.*", "gulpfile.*", "vite.config.*", "noxfile.py")
	}, changes(testTask)},
}

// moduleSuffix matches what may follow the name of a module.
var moduleSuffix = lazyregexp.New(`^(?:py|pyc|(?:[\w-]+\.)?so)$`)

// isTesting tells whether a folder on the way to a name is one of tests.
func isTesting(name string) bool {
	return within(path.Dir(name), "test", "tests", "testing", "spec", "specs", "__tests__")
}

// within tells whether a folder or file on the way to name has one of these
// names.
func within(name string, parts ...string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(parts, part) {
			return true
		}
	}
	return false
}

// based tells whether the last part of a path is one of these names, in which a
// star at an end stands for anything.
func based(name string, patterns ...string) bool {
	base := path.Base(name)
	return slices.ContainsFunc(patterns, func(p string) bool {
		if head, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(base, head)
		}
		if tail, ok := strings.CutPrefix(p, "*"); ok {
			return strings.HasSuffix(base, tail)
		}
		return base == p
	})
}

var (
	// heading matches that of a part of setup.cfg or pyproject.toml. One in
	// quotes may be a list of strings as well.
	heading = lazyregexp.New(`^\s*\[+\s*([^\[\]]+?)\s*\]+\s*(?:[#;].*)?$`)
	// pytestPart matches the parts that reach pytest, plugins that it would
	// load by itself among them, and those that say what installs the
	// repository.
	pytestPart = lazyregexp.New(`pytest|tox\b|^testenv|^tool$|^aliases$|entry[-_.]points|plugins|^build-system$`)
)

// aboutPytest tells whether the changes of setup.cfg or pyproject.toml reach
// pytest. A change whose part of the file the patch does not show may do so.
func aboutPytest(s section) bool {
	part, shown := "", false
	about, any := false, false
	s.changed(func(sign byte, line []byte) bool {
		if sign == hunkStart {
			part, shown = "", false
			return true
		}
		if m := heading.FindSubmatch(line); m != nil {
			part = string(m[1])
			shown = !strings.ContainsAny(part, "\"',")
		}
		if sign == '+' || sign == '-' {
			any = true
			about = len(bytes.TrimSpace(line)) > 0 && !shown || pytestPart.MatchString(part) || bytes.Contains(line, []byte("pytest11"))
		}
		return !about
	})
	return about || !any
}

var (
	javaTests = lazyregexp.New(`surefire|failsafe|skipTests|maven\.test|[tT]estFailureIgnore|ignoreFailures|useJUnit|useTestNG|` +
		`\btest(?:Logging)?\s*\{|<(?:ex|in)cludes?>|\bexclude\w*|junit|haltonfailure|failureproperty`)
	cargoTests = lazyregexp.New(`\[\[(?:test|bench)\]\]|^\s*(?:harness|autotests|test|doctest|build)\s*=|\[(?:patch|replace|profile\.test)`)
	goSetup    = lazyregexp.New(`\bfunc\s+(?:TestMain|init)\s*\(`)
	goReplaces = lazyregexp.New(`\breplace\b|=>`)
	testTask   = lazyregexp.New(`(?i)\b(?:add_)?(?:tests?|check|r?spec|cucumber|karma|mocha|jest|ctest)\b|TESTS`)
)

// changes makes a look at the lines that a patch adds or removes. A change
// without lines, such as a new name, counts.
func changes(re *lazyregexp.Regexp) func(section) bool {
	return func(s section) bool {
		found, any := false, false
		s.changed(func(sign byte, line []byte) bool {
			if sign == '+' || sign == '-' {
				any = true
				found = re.Match(line)
			}
			return !found
		})
		return found || !any
	}
}
