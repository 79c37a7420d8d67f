package script_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/runner/grade/script"
)

func TestFiles(t *testing.T) {
	for name, test := range map[string]struct{ patch, changed, added string }{
		"nothing": {"", "", ""},
		"prose":   {"hello\n\nworld", "", ""},
		"several": {
			"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n--- a/x\n-\n+++ b/x\n+\ndiff --git a/m b/o\nrename from m\nrename to o\n" +
				"diff --git a/p b/p\ndeleted file mode 100644\n",
			"n m p", "",
		},
		"added":                {"diff --git a/n b/n\nnew file mode 100644\nindex 0..1\nBinary files /dev/null and b/n differ\n", "", "n"},
		"a mode within a hunk": {"diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\nnew file mode 1\n", "n", ""},
		"quoted, with a space": {
			"diff --git \"a/\\303\\251 z.py\" \"b/\\303\\251 z.py\"\nnew file mode 100644\ndiff --git \"a/\\303\" \"b/\\303\"\n", "", `"\303\251 z.py"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed, added := script.PatchFiles(test.patch)
			if strings.Join(changed, " ") != test.changed || strings.Join(added, " ") != test.added {
				t.Errorf("changed %q, added %q; want %q and %q", changed, added, test.changed, test.added)
			}
		})
	}
}

func FuzzFiles(f *testing.F) {
	f.Add(testPatch)
	f.Add("diff --git \"a/\\303\" \"b/x\"\nBinary files a and b differ\n--- /dev/null\n+++ \"b/\"\n@@ -0,0 +1 @@\n+\n")
	f.Fuzz(func(t *testing.T, patch string) {
		changed, added := script.PatchFiles(patch)
		for _, name := range append(changed, added...) {
			if len(name) > len(patch) || strings.Contains(name, "\n") {
				t.Errorf("a file is called %q", name)
			}
		}
		script.Directives("django/django", patch)
	})
}
