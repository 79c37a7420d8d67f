package fake_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model/fake"
)

// TestFaults compares every fault, for both APIs, plain and streamed, with
// testdata/faults: the bytes, the time, the statistics. -update rewrites the files.
func TestFaults(t *testing.T) {
	all := append([]fake.Fault{{Name: "none"}}, fake.Faults()...)
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			var got strings.Builder
			for _, api := range []string{"openai", "anthropic"} {
				for _, stream := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) { oneFault(t, &got, f, api, stream) })
				}
			}
			golden := filepath.Join("testdata", "faults", f.Name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func oneFault(t *testing.T, out *strings.Builder, f fake.Fault, api string, stream bool) {
	p := &fake.Plan{Rules: []fake.Rule{{Faults: []string{f.Name}}}}
	if f.Name == "none" {
		p = nil
	}
	s, l, stop := serve(t, fake.Config{Plan: p})
	defer stop()
	start := time.Now()
	answer := raw(t, l, api, body(api, stream))
	took := time.Since(start)
	stop()
	r := s.Stats().Requests[0]

	fmt.Fprintf(out, "=== %s, stream %t: %s, charged %d, after %v\n%s\n", api, stream, r.Outcome, s.Stats().Charged.Replies, took,
		strings.ReplaceAll(answer, "\r\n", "\n"))
	if stream && strings.Contains(answer, "200 OK") && !strings.Contains(answer, "text/event-stream") {
		t.Error("a stream of another type")
	}
	if n := s.Stats().Charged.Replies; (n == 1) != (f.Charged || f.Name == "none") {
		t.Errorf("%d replies charged, Fault.Charged is %t", n, f.Charged)
	}
	if r.Fault != f.Name && f.Name != "none" {
		t.Errorf("the statistics have the fault %q", r.Fault)
	}
}
