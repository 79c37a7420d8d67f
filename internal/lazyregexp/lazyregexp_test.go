package lazyregexp_test

import (
	"testing"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Test programs detect invalid expressions, even unused ones.
func TestNewCompilesInTests(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New did not panic")
		}
	}()
	lazyregexp.New("(")
}

func TestRegexp(t *testing.T) {
	if r := lazyregexp.New(`(\d+)-`); r.MatchString("a") || r.FindStringSubmatch("a12-b")[1] != "12" {
		t.Error("wrong match")
	}
}
