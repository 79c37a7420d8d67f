package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxArchitectureLines keeps ARCHITECTURE.md readable in one sitting.
const maxArchitectureLines = 200

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)#]+)\)`)
	// repositoryPath matches a file name, or a path with a slash. Paths with
	// placeholders, such as env/<name>, do not match.
	repositoryPath = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$|^[\w-]+\.(go|md|sh|ya?ml)$`)
)

// TestArchitecture checks the length of ARCHITECTURE.md, and that the files and
// folders that it names exist.
func TestArchitecture(t *testing.T) {
	root := "../.."
	data, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n > maxArchitectureLines {
		t.Errorf("ARCHITECTURE.md has %d lines, more than %d", n, maxArchitectureLines)
	}
	check := func(name string) {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", name)
		}
	}
	for _, m := range link.FindAllStringSubmatch(string(data), -1) {
		if !strings.Contains(m[1], "://") {
			check(m[1])
		}
	}
	paths := 0
	for _, m := range codeSpan.FindAllStringSubmatch(string(data), -1) {
		name := m[1]
		if !repositoryPath.MatchString(name) || name == "golang.org/x/sys" || name == "org/name" {
			continue
		}
		paths++
		check(name)
	}
	if paths == 0 {
		t.Error("ARCHITECTURE.md names no files")
	}
}
