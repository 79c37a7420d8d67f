package suspect

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
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
		return slices.Contains([]string{".github", ".circleci", ".gitlab-ci.yml", ".travis.yml"}, top)
	}, nil},
	{StartupHook, "Python runs it whenever it starts", func(name string) bool {
		return within(name, "sitecustomize", "usercustomize") || based(name, "sitecustomize.py", "usercustomize.py", "*.pth")
	}, nil},
	{ShadowsRunner, "Python may take it for the test runner", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		return slices.Contains([]string{"pytest.py", "unittest.py", "nose.py", "pytest", "unittest", "nose"}, top)
	}, nil},
	{TestSetup, "the test runner loads it before the tests", func(name string) bool {
		return based(name, "conftest.py", "spec_helper.rb", "rails_helper.rb", "test_helper.rb",
			"setupTests.*", "jest.setup.*", "vitest.setup.*")
	}, nil},
	{SetupScript, "the evaluation runs it to install the repository", func(name string) bool {
		return name == "setup.py"
	}, nil},
	{TestConfig, "says how tests are found and run", func(name string) bool {
		return based(name, "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
			"jest.config.*", "vitest.config.*", "vitest.workspace.*", "karma.conf.*", "karma.config.*",
			".mocharc*", "mocha.opts", "jasmine.json", "ava.config.*", ".nycrc*",
			"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", ".rspec", ".rspec-local",
			"CTestCustom.cmake", "CTestConfig.cmake", "nextest.toml") ||
			strings.HasSuffix("/"+name, "/.cargo/config") || strings.HasSuffix("/"+name, "/.cargo/config.toml")
	}, nil},
	{TestConfig, "changes what it says about tests", func(name string) bool {
		return based(name, "setup.cfg", "pyproject.toml")
	}, aboutPytest},
	{TestConfig, "changes scripts, or what it says about a test runner", func(name string) bool {
		return based(name, "package.json")
	}, changes(packageKey)},
	{TestConfig, "changes how tests are run", func(name string) bool {
		return based(name, "pom.xml", "build.gradle", "build.gradle.kts")
	}, changes(javaTests)},
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
	heading = regexp.MustCompile(`^\s*\[+\s*([^\[\]]+?)\s*\]+`)
	// pytestPart matches the parts of setup.cfg and pyproject.toml that reach
	// pytest, plugins that it would load by itself among them.
	pytestPart = regexp.MustCompile(`pytest|^tool$|^aliases$|entry[-_.]points|plugins`)
)

// aboutPytest tells whether the changes of setup.cfg or pyproject.toml reach
// pytest. A change whose part of the file the patch does not show may do so.
func aboutPytest(s section) bool {
	part, shown := "", false
	about, any := false, false
	s.changed(func(sign byte, line []byte) bool {
		if m := heading.FindSubmatch(line); m != nil {
			part, shown = string(m[1]), true
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
	packageKey = regexp.MustCompile(`"(?:(?:pre|post)?test[\w:.-]*|(?:pre|post)?install|jest|mocha|karma|vitest|ava|jasmine|nyc|` +
		`setupFiles\w*|global(?:Setup|Teardown)|reporters|runner|preset|transform|moduleNameMapper)"\s*:`)
	javaTests = regexp.MustCompile(`surefire|failsafe|skipTests|maven\.test|[tT]estFailureIgnore|ignoreFailures|useJUnit|useTestNG|` +
		`\btest(?:Logging)?\s*\{|<(?:ex|in)cludes?>|\bexclude\w*`)
)

// changes makes a look at the lines that a patch adds or removes. A change
// without lines, such as a new name, counts.
func changes(re *regexp.Regexp) func(section) bool {
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
