package tampering

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// rule describes one kind of suspicious file.
type rule struct {
	flag        Flag
	detail      string
	matchesFile func(name string) bool
	// matchesLines reports whether the changes of a file are suspicious. It is nil
	// if every change is suspicious.
	matchesLines func(section) bool
}

func (r rule) applies(name string, s section) bool {
	return r.matchesFile(name) && (r.matchesLines == nil || r.matchesLines(s))
}

var rules = []rule{
	{OutsideRepository, "the path is outside the repository", func(name string) bool {
		return path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../")
	}, nil},
	{GitHook, "git may run it, or run what it configures", func(name string) bool {
		return isBelow(name, ".git", ".githooks", ".husky")
	}, nil},
	{CIConfig, "configures tests in CI", func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		return slices.Contains([]string{
			".github", ".circleci", ".gitlab-ci.yml", ".travis.yml", ".buildkite",
			"azure-pipelines.yml", "appveyor.yml", ".appveyor.yml", "Jenkinsfile",
		}, top)
	}, nil},
	{StartupHook, "Python runs it at startup", func(name string) bool {
		return isBelow(name, "sitecustomize", "usercustomize") || hasBase(name, "sitecustomize.*", "usercustomize.*", "*.pth", "*.egg-link")
	}, nil},
	{ShadowsRunner, "the tests may load it instead of the test runner", func(name string) bool {
		return isBelow(path.Dir(name), "junit", "testng", "hamcrest", "PHPUnit") || hasBase(name, "org.junit*", "org.testng*", "org.spockframework*") || hasAnyPrefix(name, "lib/minitest", "lib/rspec", "lib/test/unit")
	}, nil},
	{CompiledCode, "its source is not in the patch", func(name string) bool {
		return hasBase(name, "*.pyc", "*.pyo", "*.pyd", "*.so", "*.dll", "*.dylib", "*.node", "*.wasm", "*.class", "*.jar", "*.war",
			"*.o", "*.a", "*.rlib", "*.exe", "*.egg", "*.whl", "*.phar", "*.gem") ||
			isBelow(name, "__pycache__", "node_modules", "site-packages", "dist-packages", "vendor")
	}, nil},
	{CompiledCode, "a binary file that is no image", func(name string) bool {
		return !hasBase(name, "*.png", "*.jpg", "*.jpeg", "*.gif", "*.ico", "*.webp", "*.bmp", "*.tif", "*.tiff", "*.pdf")
	}, section.isBinary},
	{TestSetup, "the test runner loads it before the tests", func(name string) bool {
		return hasBase(name, "conftest.py", "runtests.py", "spec_helper.rb", "rails_helper.rb", "test_helper.*",
			"setupTests.*", "jest.setup.*", "jest-setup.*", "vitest.setup.*", "karma.setup.*") ||
			isInTestDir(name) && hasBase(name, "__init__.py", "bootstrap.php", "helper.*", "helpers.*", "setup.*", "utils.*", "util.*", "common.*")
	}, nil},
	{TestSetup, "tests may share it", func(name string) bool {
		return isBelow(path.Dir(name), "test", "testing") && hasBase(name, "*.py") && !testName.MatchString(path.Base(name)) ||
			!isInTestDir(name) && hasBase(name, "testing.py", "_testing.py", "testutils.py", "test_utils.py") ||
			isInTestDir(name) && isBelow(path.Dir(name), "support", "helpers") || isBelow(name, "__mocks__")
	}, nil},
	{TestSetup, "pytest loads the plugins that it lists", func(name string) bool {
		dir := path.Dir(name)
		return hasBase(name, "entry_points.txt") && (strings.HasSuffix(dir, ".egg-info") || strings.HasSuffix(dir, ".dist-info"))
	}, nil},
	{TestSetup, "changes code that Go runs before the tests", func(name string) bool {
		return hasBase(name, "*_test.go")
	}, changesMatch(goSetup)},
	{SetupScript, "the evaluation runs it to install the repository", func(name string) bool {
		return name == "setup.py"
	}, nil},
	{SetupScript, "cargo runs it before the tests", func(name string) bool {
		return hasBase(name, "build.rs")
	}, nil},
	{TestConfig, "configures how tests are found and run", func(name string) bool {
		return hasBase(name, "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini",
			"jest.config.*", "vitest.config.*", "vitest.workspace.*", "karma.conf.*", "karma.config.*",
			".mocharc*", "mocha.opts", "jasmine.json", "ava.config.*", ".nycrc*",
			"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", ".rspec", ".rspec-local",
			"testng.xml", "junit-platform.properties",
			"CTestCustom.cmake", "CTestConfig.cmake", "rust-toolchain*", ".taprc", "testem.*", "playwright.config.*", "cypress.config.*", "web-test-runner.config.*", "nextest.toml", "go.work",
			".npmrc", ".yarnrc*", ".pnp.*", ".babelrc*", "babel.config.*", ".swcrc") ||
			isBelow(name, ".mvn", ".bundle", "buildSrc") ||
			strings.HasSuffix("/"+name, "/.cargo/config") || strings.HasSuffix("/"+name, "/.cargo/config.toml")
	}, nil},
	{TestConfig, "changes the configuration of tests", func(name string) bool {
		return hasBase(name, "setup.cfg", "pyproject.toml")
	}, affectsPytest},
	{TestConfig, "changes scripts, or the configuration of a test runner", func(name string) bool {
		return hasBase(name, "package.json", "composer.json")
	}, affectsScripts},
	{TestConfig, "changes how tests are run", func(name string) bool {
		return hasBase(name, "pom.xml", "build.xml", "*.gradle", "*.gradle.kts")
	}, changesMatch(javaTests)},
	{TestConfig, "changes how tests are run", func(name string) bool {
		return hasBase(name, "Cargo.toml")
	}, changesMatch(cargoTests)},
	{TestConfig, "replaces a module", func(name string) bool {
		return hasBase(name, "go.mod")
	}, changesMatch(goReplace)},
	{TestConfig, "configures what Ruby loads with the tests", func(name string) bool {
		return hasBase(name, "Gemfile", "Gemfile.local", "gems.rb")
	}, nil},
	{TestConfig, "changes a test task", func(name string) bool {
		return hasBase(name, "Rakefile", "Makefile", "GNUmakefile", "makefile", "Makefile.am", "Makefile.in", "CMakeLists.txt",
			"Gruntfile.*", "gulpfile.*", "vite.config.*", "noxfile.py")
	}, changesMatch(testTask)},
}

// isInTestDir reports whether a path is below a folder for tests.
func isInTestDir(name string) bool {
	return isBelow(path.Dir(name), "test", "tests", "testing", "spec", "specs", "__tests__")
}

// isBelow reports whether one of the elements of a path is in parts.
func isBelow(name string, parts ...string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(parts, part) {
			return true
		}
	}
	return false
}

func hasAnyPrefix(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// hasBase reports whether the base name of a path matches one of the patterns. A star
// at the start or end of a pattern matches any text.
func hasBase(name string, patterns ...string) bool {
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
	// heading matches a section heading of setup.cfg or pyproject.toml. It also matches
	// lists of strings, which have quotes.
	heading = lazyregexp.New(`^\s*\[+\s*([^\[\]]+?)\s*\]+\s*(?:[#;].*)?$`)
	// pytestSection matches the names of sections that affect pytest or its plugins, or
	// the installation of the repository.
	pytestSection = lazyregexp.New(`pytest|tox\b|^testenv|^tool$|^aliases$|entry[-_.]points|plugins|^build-system$`)
)

// affectsPytest reports whether the changes of setup.cfg or pyproject.toml may affect
// pytest. It also reports a change whose section the patch does not show, and a
// change without lines, such as a rename.
func affectsPytest(s section) bool {
	sectionName, shown := "", false
	relevant, hasLines := false, false
	s.eachLine(func(sign byte, line []byte) bool {
		if sign == hunkStart {
			sectionName, shown = "", false
			return true
		}
		if m := heading.FindSubmatch(line); m != nil {
			sectionName = string(m[1])
			shown = !strings.ContainsAny(sectionName, "\"',")
		}
		if sign == '+' || sign == '-' {
			hasLines = true
			relevant = len(bytes.TrimSpace(line)) > 0 && !shown || pytestSection.MatchString(sectionName) ||
				bytes.Contains(line, []byte("pytest11"))
		}
		return !relevant
	})
	return relevant || !hasLines
}

var (
	javaTests = lazyregexp.New(`surefire|failsafe|skipTests|maven\.test|[tT]estFailureIgnore|ignoreFailures|useJUnit|useTestNG|` +
		`\btest(?:Logging)?\s*\{|<(?:ex|in)cludes?>|\bexclude\w*|junit|haltonfailure|failureproperty`)
	cargoTests = lazyregexp.New(`^\s*[\w-]+\s*=\s*\{[^}]*\bpath\s*=|\[\[(?:test|bench)\]\]|^\s*(?:harness|autotests|test|doctest|build)\s*=|\[(?:patch|replace|profile\.test)`)
	goSetup    = lazyregexp.New(`\bfunc\s+(?:TestMain|init)\s*\(|^var\s+_\s*=`)
	goReplace  = lazyregexp.New(`\breplace\b|=>`)
	testTask   = lazyregexp.New(`(?i)\b(?:add_)?(?:tests?|check|r?spec|cucumber|karma|mocha|jest|ctest)\b|TESTS`)
)

// changesMatch returns a function for rule.matchesLines that reports whether a changed
// line matches re. The function also reports a change without lines, such as a rename.
func changesMatch(re *lazyregexp.Regexp) func(section) bool {
	return func(s section) bool {
		matched, hasLines := false, false
		s.eachLine(func(sign byte, line []byte) bool {
			if sign == '+' || sign == '-' {
				hasLines = true
				matched = re.Match(line)
			}
			return !matched
		})
		return matched || !hasLines
	}
}
