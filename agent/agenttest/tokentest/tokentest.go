// Package tokentest compares the tokens that mini exports with the books of a fake server.
package tokentest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/model/fake/vllm"
	"github.com/minibench/mini/trajectories/export"
)

// row has the fields of a row of the format tokens that follow from the books.
type row struct {
	Subagent int       `json:"subagent"`
	Turn     int       `json:"turn"`
	Turns    int       `json:"turns"`
	Last     bool      `json:"last"`
	Prompt   []int32   `json:"prompt_ids"`
	Response []int32   `json:"response_ids"`
	Mask     []int     `json:"mask"`
	Logprobs []float64 `json:"logprobs"`
}

// Check compares the rows that are exported of a journal, of the attempt and its subagents, with the calls in the books
// of the server, token for token. subagent returns the number of the subagent that got a reply, 0 for the attempt and
// -1 for a call that no row has.
func Check(t testing.TB, journal string, calls []vllm.Call, subagent func(reply string) int) {
	t.Helper()
	conversations := map[int][]vllm.Call{}
	last := 0
	for _, c := range calls {
		n := subagent(strings.Join(c.Texts[:len(c.Texts)-1], "")) // without the end token
		conversations[n], last = append(conversations[n], c), max(last, n)
	}
	for _, segments := range []bool{false, true} {
		var want []row
		for n := range last + 1 {
			want = append(want, rowsOf(conversations[n], n, segments)...)
		}
		if diff := cmp.Diff(want, exported(t, journal, segments)); diff != "" {
			t.Errorf("segments %t: the rows differ from the server's books (-books +rows):\n%.5000s", segments, diff)
		}
	}
}

// rowsOf returns the rows of the calls of a conversation.
func rowsOf(calls []vllm.Call, subagent int, segments bool) (rows []row) {
	var sequence []int32 // prompt and completion of the call before
	for i, c := range calls {
		if !segments || i == 0 || len(c.Prompt) < len(sequence) || !slices.Equal(c.Prompt[:len(sequence)], sequence) {
			rows = append(rows, row{Subagent: subagent, Turn: i + 1, Prompt: c.Prompt})
			sequence = c.Prompt
		}
		r := &rows[len(rows)-1]
		r.Turns++
		for _, id := range c.Prompt[len(sequence):] {
			r.Response, r.Mask, r.Logprobs = append(r.Response, id), append(r.Mask, 0), append(r.Logprobs, 0)
		}
		for j, id := range c.Completion {
			r.Response, r.Mask, r.Logprobs = append(r.Response, id), append(r.Mask, 1), append(r.Logprobs, c.Logprobs[j])
		}
		sequence = slices.Concat(c.Prompt, c.Completion)
	}
	if len(rows) > 0 {
		rows[len(rows)-1].Last = true
	}
	return rows
}

// exported returns the rows that are exported of a journal.
func exported(t testing.TB, journal string, segments bool) (rows []row) {
	t.Helper()
	a, sum, err := export.ReadJournal(journal, 0)
	if err != nil {
		t.Fatal(err)
	}
	source := export.AttemptSource{InstanceID: "i", Number: 1, Read: func() (*export.Item, error) {
		return &export.Item{Attempt: a, InstanceID: "i", Number: 1, SHA256: sum}, nil
	}}
	dir := filepath.Join(t.TempDir(), "out")
	options := export.Options{Format: export.Tokens, Segments: segments}
	if _, err := export.Run(t.Context(), export.Config{Options: options, Dir: dir, Workers: 1}, []export.AttemptSource{source}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "train.jsonl")) //nolint:gosec // in a folder of the test
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}
