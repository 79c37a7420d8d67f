// Package lazyregexp compiles regular expressions when they are first used, which
// makes a program start faster. It is modelled on internal/lazyregexp in the Go
// distribution.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression that is compiled when it is first used. It has the
// methods of regexp.Regexp that this module uses.
type Regexp struct{ compiled func() *regexp.Regexp }

// inTest is true in test programs, which compile all expressions at once, to find
// invalid ones.
var inTest = len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test")

// New returns a Regexp for an expression, which must be valid.
func New(expression string) *Regexp { return NewFunc(func() string { return expression }) }

// NewFunc is like New, but also computes the expression when it is first used.
func NewFunc(expression func() string) *Regexp {
	r := &Regexp{compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression()) })}
	if inTest {
		r.compiled()
	}
	return r
}

// MatchString calls the method of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Match calls the method of regexp.Regexp.
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// FindString calls the method of regexp.Regexp.
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringIndex calls the method of regexp.Regexp.
func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

// FindStringSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex calls the method of regexp.Regexp.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// FindAllSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compiled().FindAllSubmatch(b, n)
}

// FindAllString calls the method of regexp.Regexp.
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

// FindAllStringIndex calls the method of regexp.Regexp.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch calls the method of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex calls the method of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString calls the method of regexp.Regexp.
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

// ReplaceAllLiteralString calls the method of regexp.Regexp.
func (r *Regexp) ReplaceAllLiteralString(s, with string) string {
	return r.compiled().ReplaceAllLiteralString(s, with)
}

// ReplaceAllStringFunc is Regexp.ReplaceAllStringFunc.
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}
