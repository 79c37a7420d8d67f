package tampering_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner/grade/tampering"
)

// change returns a git patch that changes one line of a file.
func change(file string, lines ...string) string {
	if len(lines) == 0 {
		lines = []string{"-x", "+y"}
	}
	counts := map[byte]int{}
	for _, l := range lines {
		counts[l[0]]++
	}
	head := "@@ -1," + itoa(counts[' ']+counts['-']) + " +1," + itoa(counts[' ']+counts['+']) + " @@"
	return strings.Join(append([]string{
		"diff --git a/" + file + " b/" + file, "index 111..222 100644", "--- a/" + file, "+++ b/" + file, head,
	}, lines...), "\n") + "\n"
}

func itoa(n int) string { return string(rune('0' + n)) }

func TestPatchFlags(t *testing.T) {
	in := datasets.Instance{
		TestPatch: change("tests/test_x.py"), FailToPass: []string{"tests/test_x.py::TestA::test_numbers[1]"}, PassToPass: []string{"adds all numbers in a list", "short"},
	}
	tests := map[string]struct {
		patch string
		want  []string // flag and file
	}{
		"nothing":   {"", nil},
		"honest":    {change("src/x.py") + change("tests/test_y.py") + change("docs/conftest.md"), nil},
		"test file": {change("src/x.py") + change("tests/test_x.py"), []string{"test_file tests/test_x.py"}},
		"shadow":    {change("pytest/__init__.py") + change("src/pytest/x.py"), []string{"shadows_runner pytest/__init__.py"}},
		"once":      {change("tox.ini") + change("tox.ini"), []string{"test_config tox.ini"}},

		"pyproject, renamed": {
			"diff --git a/pyproject.toml b/old.toml\nsimilarity index 100%\nrename from pyproject.toml\nrename to old.toml\n",
			[]string{"test_config pyproject.toml"},
		},
		"pyproject, another hunk": {
			strings.TrimSuffix(change("pyproject.toml", " [project]", "+x = 1"), "\n") + "\n@@ -90,1 +91,2 @@\n y = 1\n+addopts = \"-x\"\n",
			[]string{"test_config pyproject.toml"},
		},
		"pyproject, both shown": {
			change("pyproject.toml", " [project]", "+x = 1") + "@@ -90,1 +91,2 @@\n [tool.black]\n+y = 1\n", nil,
		},
		"shadow, compiled": {change("_pytest.so") + change("pluggy.pyc"), []string{
			"compiled_code _pytest.so", "shadows_runner _pytest.so", "compiled_code pluggy.pyc", "shadows_runner pluggy.pyc",
		}},
		"next to the tests": {change("tests/random.py"), []string{"shadows_module tests/random.py"}},
		"requirement":       {change("src/iniconfig/__init__.py") + change("tests/six.py"), []string{"shadows_runner src/iniconfig/__init__.py", "shadows_runner tests/six.py"}},
		"standard library":  {change("json/__init__.py") + change("_strptime.py") + change("lib/re.py"), []string{"shadows_module json/__init__.py", "shadows_module _strptime.py", "shadows_module lib/re.py"}},
		"inside a package":  {change("pkg/json/__init__.py") + change("pkg/types.py") + change("json/x.py") + change("random.txt"), nil},
		"compiled":          {change("pkg/__pycache__/x.cpython-39.pyc") + change("x/Evil.class"), []string{"compiled_code pkg/__pycache__/x.cpython-39.pyc", "compiled_code x/Evil.class"}},
		"dependency":        {change("node_modules/mocha/index.js") + change("a/vendor/x.go"), []string{"compiled_code node_modules/mocha/index.js", "compiled_code a/vendor/x.go"}},
		"binary": {
			"diff --git a/data b/data\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZQzU|?VY\n\n" +
				"diff --git a/x.png b/x.png\nindex 1..2\nBinary files a/x.png and b/x.png differ\n",
			[]string{"compiled_code data"},
		},
		"exit in other languages": {
			change("x.js", "+process.exit(0)") + change("x.go", "+\tos.Exit(0)") + change("x.rs", "+std::process::exit(0);") +
				change("X.java", "+System.exit(0);") + change("x.rb", "+at_exit { }") + change("x.php", "+register_shutdown_function($f);") + change("x.c", "+\t_exit(0);"),
			[]string{
				"ends_process x.js", "ends_process x.go", "ends_process x.rs", "ends_process X.java", "ends_process x.rb", "ends_process x.php", "ends_process x.c",
			},
		},
		"words of code": {
			change("x.c", "+int exited = at_exit_count(), my_exit(1);") + change("x.py", "+def __exit__(self): self.exit(); executor.exec(sql)") +
				change("y.py", "+if sys.stdout == f: nosetup = 'tests/x'"),
			nil,
		},
		"exit in tests":  {change("tests/test_y.py", "+os._exit(0)") + change("x_test.go", "+os.Exit(1)"), []string{"ends_process x_test.go"}},
		"results":        {change("src/x.py", "+print('PASSED a')") + change("a.go", "+println(\"--- PASS: TestA\")"), []string{"names_runner src/x.py", "names_runner a.go"}},
		"name of a test": {change("src/x.js", "+log('adds all numbers in a list (5 ms)')") + change("src/y.py", "+n = 'test_numbers'"), []string{"names_runner src/x.js", "names_runner src/y.py"}},
		"link to a package": {
			"diff --git a/json b/json\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/json\n@@ -0,0 +1 @@\n+pkg/_json\n\\ No newline at end of file\n",
			[]string{"shadows_module json"},
		},
		"hidden code": {
			change("src/x.py", "+getattr(os, '_ex' + 'it')(0)") + change("src/y.py", "+exec(bytes.fromhex(text))") + change("x.js", "+new Function(text)()"),
			[]string{"hides_code src/x.py", "hides_code src/y.py", "hides_code x.js"},
		},
		"other names":   {change("src/x.py", "+import os as o", "+o._exit(0)") + change("y.py", "+from sys import exit as e"), []string{"ends_process src/x.py", "hides_code src/x.py", "ends_process y.py"}},
		"code in tests": {change("pkg/tests/evil.py", "+os._exit(0)") + change("pkg/x.py", "+from .tests import evil"), []string{"names_runner pkg/x.py"}},
		"assertions": {
			change("x.rs", "+macro_rules! assert_eq {") + change("x.h", "+#define EXPECT_EQ(a, b)") + change("x.py", "+builtins.isinstance = f"),
			[]string{"names_runner x.rs", "names_runner x.h", "names_runner x.py"},
		},
		"package of tests": {change("tests/__init__.py") + change("src/__init__.py"), []string{"test_setup tests/__init__.py"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.NoDiff(t, cmp.Diff(test.want, flags(tampering.CheckPatch([]byte(test.patch), in))), "(-want +got)\n%s", test.patch)
			crlf := strings.ReplaceAll(test.patch, "\n", "\r\n")
			assert.Equal(t, test.want, flags(tampering.CheckPatch([]byte(crlf), in)), "with carriage returns")
		})
	}
}

// TestOneFile checks the flags of patches of one file: of files and lines that a patch adds
// (code.txt), and of any hunk (patches.txt).
func TestOneFile(t *testing.T) {
	for file, mark := range map[string]string{"code.txt": "+", "patches.txt": ""} {
		table, err := os.ReadFile(filepath.Join("testdata", file))
		require.NoError(t, err)
		for row := range strings.Lines(string(table)) {
			fields := strings.SplitN(strings.TrimSuffix(row, "\n"), "  ", 3)
			if len(fields) < 2 || strings.HasPrefix(row, "#") {
				continue
			}
			var lines []string
			if len(fields) == 3 {
				lines = strings.Split(mark+strings.ReplaceAll(fields[2], `\n`, "\n"+mark), "\n")
			}
			patch := change(fields[1], lines...)
			for _, text := range []string{patch, strings.ReplaceAll(patch, "\n", "\r\n")} {
				var got []string
				for _, f := range tampering.CheckPatch([]byte(text), datasets.Instance{}) {
					if got = append(got, string(f.Flag)); f.File != fields[1] {
						t.Errorf("%s: %s is of %s", row, f.Flag, f.File)
					}
				}
				assert.Equal(t, strings.Trim(fields[0], "-"), strings.Join(got, ","), "%s", row)
			}
		}
	}
}

// The test runner may be a file of the repository, and the repository may be that of the test
// runner.
func TestRunner(t *testing.T) {
	row := ": '>>>>> Start Test Output'\n./tests/runtests.py --settings=tests/settings.py (a b)\n: '>>>>> End Test Output'\npython x.py"
	in := datasets.Instance{ID: "a", EvalScript: row, TestPatch: change("a")}
	got := flags(tampering.CheckPatch([]byte(change("tests/runtests.py")+change("x.py")+change("tests/settings.py")+change("a")), in))
	want := []string{"test_setup tests/runtests.py", "test_setup tests/settings.py", "test_file a"}
	assert.Equal(t, want, got, "the result")
	patch := []byte(change("pytest.py") + change("_pytest/__init__.py"))
	if got := flags(tampering.CheckPatch(patch, datasets.Instance{Repo: "pytest-dev/pytest"})); got != nil {
		t.Errorf("pytest itself: %v", got)
	}
	assert.Equal(t, 2, len(flags(tampering.CheckPatch(patch, datasets.Instance{Repo: "a/b"}))), "another repository")
}

func flags(found []tampering.Finding) []string {
	var list []string
	for _, f := range found {
		list = append(list, string(f.Flag)+" "+f.File)
	}
	return list
}

// Each patch hides a conftest.py in another way, between two honest sections that must stay
// unchanged.
func TestRemoveHiddenFiles(t *testing.T) {
	const body = "@@ -0,0 +1 @@\n+evil\n"
	tests := map[string]string{
		"git":          change("conftest.py"),
		"new":          "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n" + body,
		"empty":        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\nindex 0000000..e69de29\n",
		"deleted":      "diff --git a/conftest.py b/conftest.py\ndeleted file mode 100644\n--- a/conftest.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
		"mode":         "diff --git a/conftest.py b/conftest.py\nold mode 100644\nnew mode 100755\n",
		"renamed to":   "diff --git a/x.py b/conftest.py\nrename from x.py\nrename to conftest.py\n",
		"renamed from": "diff --git a/conftest.py b/x.py\nrename from conftest.py\nrename to x.py\n",
		"copied":       "diff --git a/x.py b/conftest.py\ncopy from x.py\ncopy to \"conf\\164est.py\"\n",
		"binary":       "diff --git a/conftest.py b/conftest.py\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZQzU|?VY\n\nliteral 0\nHcmV?d00001\n\n",
		"no header":    "--- a/conftest.py\n+++ b/conftest.py\n" + body,
		"times":        "--- a/conftest.py\t2024-01-01 00:00:00\n+++ b/conftest.py\t2024-01-01 00:00:00\n" + body,
		"time, spaces": "--- a/conftest.py 2024-01-01 00:00:00\n+++ b/conftest.py 2024-01-01 00:00:00\n" + body,
		"diff -u":      "diff -ruN old/conftest.py new/conftest.py\n--- old/conftest.py\n+++ new/conftest.py\n" + body,
		"index":        "Index: conftest.py\n===\n--- conftest.py\n+++ conftest.py\n" + body,
		"index only":   "Index: a/conftest.py\n===\n",
		"context":      "*** a/conftest.py\n--- b/conftest.py\n***************\n*** 1,2 ****\n--- 1,3 ----\n  x\n+ evil\n  y\n",
		"quoted":       "diff --git \"a/conf\\164est.py\" \"b/\\143onftest.py\"\n--- \"a/conf\\164est.py\"\n+++ \"b/conftest.py\"\n" + body,
		"half quoted":  "diff --git a/x.py \"b/conftest.py\"\nrename from x.py\nrename to \"conftest.py\"\n",
		"roundabout":   "--- a/./x//../conftest.py\n+++ b//conftest.py\n" + body,
		"other prefix": "diff --git i/conftest.py w/conftest.py\n--- i/conftest.py\n+++ w/conftest.py\n" + body,
		"no prefix":    "diff --git conftest.py conftest.py\n--- conftest.py\n+++ conftest.py\n" + body,
		"spoken of":    "Note the change of\n--- a/conftest.py\n+++ b/conftest.py\n" + body,
		"indented":     "  --- a/conftest.py\n  +++ b/conftest.py\n  @@ -0,0 +1 @@\n  +evil\n",
		"crlf":         strings.ReplaceAll(change("conftest.py"), "\n", "\r\n"),
	}
	for name, hidden := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := change("src/a b.py"), change("src/z.py")
			patch := []byte(before + hidden + after)
			found := tampering.CheckPatch(patch, datasets.Instance{})
			if !slices.Contains(tampering.Files(found), "conftest.py") {
				t.Fatalf("found %v", found)
			}
			want := before + after
			if name == "spoken of" {
				want = before + "Note the change of\n" + after
			}
			assert.NoDiff(t, cmp.Diff(want, string(tampering.RemoveFiles(patch, tampering.Files(found)))), "(-want +got)")
		})
	}
}

// Lines of a hunk that look like file names are not file names.
func TestNamesWithinHunks(t *testing.T) {
	patch := "--- a/doc.md\n+++ b/doc.md\n@@ -1,3 +1,3 @@\n \n--- a/conftest.py\n+++ b/conftest.py\n x\n\\ No newline at end of file\n"
	if found := tampering.CheckPatch([]byte(patch), datasets.Instance{}); found != nil {
		t.Errorf("found %v", found)
	}
	// After the hunk, such lines are file names.
	patch += "--- a/conftest.py\n+++ b/conftest.py\n@@ -1 +1 @@\n-x\n+y"
	assert.Equal(t, []string{"test_setup conftest.py"}, flags(tampering.CheckPatch([]byte(patch), datasets.Instance{})))
	// A hunk with fewer lines than its header claims ends at the next header.
	patch = "--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1,9 @@\n-x\n" + change("conftest.py")
	assert.Equal(t, []string{"test_setup conftest.py"}, flags(tampering.CheckPatch([]byte(patch), datasets.Instance{})))
}

func FuzzWithout(f *testing.F) {
	f.Add([]byte(change("conftest.py")+change("x.py")), "x.py")
	f.Add([]byte("diff --git \"a/\\303\" b/x\n--- a/x\n+++ \"b/\\\"\n@@ -1 +1,2 @@\n-\n*** a\n--- b\n*** 1 ****\n"), "x")
	f.Add([]byte("Index: a\r\n--- \n+++ \nrename to "), "a")
	f.Add([]byte("diff --git  \nGIT binary patch\nrename from \"\n"), ".")
	f.Fuzz(func(t *testing.T, patch []byte, file string) {
		if got := tampering.RemoveFiles(patch, nil); !bytes.Equal(got, patch) {
			t.Errorf("without nothing: %q", got)
		}
		found := tampering.CheckPatch(patch, datasets.Instance{TestPatch: string(patch)})
		for _, files := range [][]string{{file}, tampering.Files(found)} {
			rest := tampering.RemoveFiles(patch, files)
			if !isSubsequence(lines(rest), lines(patch)) {
				t.Errorf("without %q: %q", files, rest)
			}
		}
		// All names are in the test patch, so nothing is left of the patch.
		for _, f := range tampering.CheckPatch(tampering.RemoveFiles(patch, tampering.Files(found)), datasets.Instance{}) {
			t.Errorf("%+v is left", f)
		}
	})
}

func lines(text []byte) [][]byte { return bytes.SplitAfter(text, []byte("\n")) }

func isSubsequence(part, whole [][]byte) bool {
	i := 0
	for _, line := range whole {
		if i < len(part) && bytes.Equal(part[i], line) {
			i++
		}
	}
	return i == len(part) || i == len(part)-1 && len(part[i]) == 0
}
