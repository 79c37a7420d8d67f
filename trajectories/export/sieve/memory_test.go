package sieve_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/minibench/mini/trajectories/export/sieve"
)

// TestMemory: what is kept of an attempt is no text of it.
func TestMemory(t *testing.T) {
	s, err := sieve.New(sieve.Config{Dedupe: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	const attempts = 4000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for n := range attempts {
		if kept := s.Take(s.Look(item(fmt.Sprintf("own__name-%d", n), 1, 4))); len(kept) != 1 {
			t.Fatalf("%d is not kept", n)
		}
	}
	each := (int64(heap()) - int64(before)) / attempts
	t.Logf("%d bytes an attempt", each)
	if each > 1500 {
		t.Errorf("%d bytes are kept of an attempt", each)
	}
	runtime.KeepAlive(s)
}
