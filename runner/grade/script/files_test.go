package script_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade/script"
)

func TestFiles(t *testing.T) {
	tests := map[string]struct {
		patch string
		want  []script.File
	}{
		"nothing": {"", nil},
		"prose":   {"hello\n\nworld", nil},
		"no header of git": {
			"--- x.py\t2020-01-01\n+++ y.py\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n", []script.File{{"x.py", "y.py"}},
		},
		"added without a mode": { // the header does not say so: the names make a second file
			"diff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+b\n", []script.File{{"a/n", "b/n"}, {"/dev/null", "b/n"}},
		},
		"names within a hunk": {
			"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n--- a/x\n-\n+++ b/x\n+\ndiff --git a/m b/m\n",
			[]script.File{{"a/n", "b/n"}, {"a/m", "b/m"}},
		},
		"no newline at the end": {
			"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
			[]script.File{{"a/n", "b/n"}},
		},
		"blank lines as context": {"--- a/n\n+++ b/n\n@@ -1,3 +1,3 @@\n\n\r\n-a\n+b\n", []script.File{{"a/n", "b/n"}}},
		"carriage returns":       {"diff --git a/n b/n\r\nnew file mode 100644\r\n", []script.File{{"a/n", "b/n\r"}}},
		"binary":                 {"Binary files a/x and b/x differ\n", []script.File{{"a/x", "b/x"}}},
		"quoted, with a space": {
			"diff --git \"a/\\303\\251 z.py\" \"b/\\303\\251 z.py\"\nnew file mode 100644\n",
			[]script.File{{"/dev/null", `"b/\303\251 z.py"`}},
		},
		"binary as text": {
			"diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\n\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
			[]script.File{{"a/x", "b/x"}, {"a/y", "b/y"}},
		},
		"no prefixes": {"diff --git x y\n", []script.File{{"x", "y"}}},
		"addresses":   {"diff --git svn://x/a b svn://x/c\n", []script.File{{"svn://x/a b", "svn://x/c"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := script.Files(test.patch)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestFilesRefuses(t *testing.T) {
	const head = "--- a/n\n+++ b/n\n"
	for patch, want := range map[string]string{
		"@@ -1 +1 @@\n":                          "line 1: a hunk without a file",
		"+++ b/n\n":                              "line 1: a new name without an old one",
		"diff --git a/n b/n\n+++ b/m\n":          `line 2: the new name "b/m" is not the header's`,
		"new file mode 100644\n":                 "line 1: a new file without a header",
		head + "deleted file mode 1\n":           "line 3: a deleted file without a header",
		"GIT binary patch\n":                     "line 1: a binary patch without a file",
		"\\ No newline at end of file\n":         "line 1: a line about a missing newline",
		head + "@@ -1 +1 @@\nx\n":                "line 4: not a line of a hunk",
		head + "@@ -1,2 +1,2 @@\n-a\n-b\n-c\n":   "line 6: the hunk is longer",
		head + "@@ -1,2 +1,2 @@\n-a\n":           "line 4: the hunk is shorter",
		head + "@@ -1 +1,99999999999999999 @@":   "line 3: the hunk is shorter",
		head + "@@ -1 +1,999999999999999999999":  "",
		head + "@@ -1 +1,9999999999999999999 @@": "line 3: a hunk of 9999999999999999999 lines",
	} {
		_, err := script.Files(patch)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", patch, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", patch, err, want)
		}
	}
}

func FuzzFiles(f *testing.F) {
	f.Add(testPatch)
	f.Add("diff --git \"a/\\303\" \"b/x\"\nBinary files a and b differ\n--- /dev/null\n+++ \"b/\"\n@@ -0,0 +1 @@\n+\n")
	f.Fuzz(func(t *testing.T, patch string) {
		files, err := script.Files(patch)
		if err != nil {
			return
		}
		for _, file := range files {
			if len(file.Path()) > max(len(file.Old), len(file.New)) {
				t.Errorf("%q has the path %q", file, file.Path())
			}
		}
		script.Directives("django/django", patch)
	})
}
