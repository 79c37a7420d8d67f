package web

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTrustedTypesOfTemplates looks for the types of html/template that turn escaping off.
// template.HTML is for the packages that escape themselves, and for values that come from them.
func TestTrustedTypesOfTemplates(t *testing.T) {
	forbidden := regexp.MustCompile(`template\.(JS|JSStr|URL|Srcset|CSS|HTMLAttr)\b`)
	conversion := regexp.MustCompile(`template\.HTML\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		allowed := strings.HasPrefix(path, "markup/") || strings.HasPrefix(path, "chart/")
		for i, line := range strings.Split(string(data), "\n") {
			if forbidden.MatchString(line) || !allowed && conversion.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPagesHaveNoInlineCode looks in templates, style sheet and script for what the policy of
// content forbids, for other hosts, and for ways to make elements of text.
func TestPagesHaveNoInlineCode(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"style attribute":   regexp.MustCompile(`\sstyle\s*=\s*["']`),
		"event handler":     regexp.MustCompile(`<[^>]*\son[a-z]+\s*=`),
		"another host":      regexp.MustCompile(`(?i)(https?:|wss?:|["'(]\s*)//[a-z0-9]`),
		"javascript:":       regexp.MustCompile(`(?i)javascript:`),
		"code from text":    regexp.MustCompile(`\b(eval|Function|document\.write|insertAdjacentHTML|outerHTML|setHTMLUnsafe|createContextualFragment)\s*[(=]`),
		"imported resource": regexp.MustCompile(`@import|url\(`),
		"style in a page":   regexp.MustCompile(`<style`),
		"unquoted value":    regexp.MustCompile(`<[^>"]*=\{\{`),
	}
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "assets/viewer.css", "assets/viewer.js")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content := string(data)
		for what, pattern := range forbidden {
			if found := pattern.FindString(content); found != "" {
				t.Errorf("%s: %s: %q", file, what, found)
			}
		}
	}
	// The script makes elements of text at one place, which the policy of trusted types knows.
	if n := strings.Count(script, "innerHTML"); n != 1 {
		t.Errorf("viewer.js has %d times innerHTML", n)
	}
	if lines := strings.Count(script, "\n"); lines > 600 {
		t.Errorf("viewer.js has %d lines, more than 600", lines)
	}
}
