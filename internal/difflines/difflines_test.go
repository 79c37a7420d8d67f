package difflines_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/difflines"
)

func TestLines(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"git", "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n", "file file file file hunk  del add "},
		{"text", "- an item\n+ another\n--- a rule\n@@ no hunk", "   "},
		{"without git", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\nthe end\n- c", "file file hunk del add  "},
	} {
		var s difflines.Scanner
		var got []string
		for rest, more := tt.text, true; more; {
			var line string
			line, rest, more = strings.Cut(rest, "\n")
			got = append(got, string(s.Line(line, rest)))
		}
		assert.Equal(t, tt.want, strings.Join(got, " "), "%s", tt.name)
	}
}
