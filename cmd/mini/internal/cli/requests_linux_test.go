package cli_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// requestsBinary names the variable with the path of another mini to test.
const requestsBinary = "MINI_REQUESTS_BINARY"

// TestRequests compares the bodies of all requests to models with those that an earlier
// version sent: of the scenarios in requests_scenarios_linux_test.go, and of the attempts
// that are resumed from their journals, truncated after each of their records as by a kill.
//
// With -update, it writes testdata/requests.golden, which has a line for each different
// body and each run, and testdata/requests.gz with the bodies.
//
// With MINI_REQUESTS_BINARY=/path/of/mini, it tests that executable in place of the code
// that it was built with:
//
//	MINI_REQUESTS_BINARY=/tmp/mini go test ./cmd/mini/internal/cli -run TestRequests
func TestRequests(t *testing.T) {
	t.Parallel()
	want := readRequests(t)
	got := map[string][]recordedRun{}
	var mu sync.Mutex
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range requestScenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				runs := s.record(t)
				mu.Lock()
				got[s.name] = runs
				mu.Unlock()
				if !updating() {
					compareRuns(t, runs, want[s.name])
				}
			})
		}
	})
	if updating() && !t.Failed() {
		writeRequests(t, want, got)
	}
}

// recordedRun has the bodies of the requests of one run, with their times and paths masked.
type recordedRun struct {
	name   string // "start", or the record after which the journal was truncated, such as "message 3"
	bodies []string
}

// maxDifferences bounds the differences that a scenario shows.
const maxDifferences = 3

// compareRuns reports the differences between the runs of a scenario and those of the
// golden files.
func compareRuns(t *testing.T, got, want []recordedRun) {
	t.Helper()
	if want == nil {
		t.Fatalf("it is not in %s; go test -run TestRequests -update adds it", requestsGolden)
	}
	differences := 0
	for _, run := range got {
		i := slices.IndexFunc(want, func(old recordedRun) bool { return old.name == run.name })
		if i < 0 {
			t.Errorf("run %q is not in %s", run.name, requestsGolden)
			continue
		}
		if slices.Equal(run.bodies, want[i].bodies) {
			continue
		}
		if differences++; differences <= maxDifferences {
			t.Errorf("run %q: %s", run.name, run.difference(want[i]))
		}
	}
	if differences > maxDifferences {
		t.Errorf("%d of %d runs differ", differences, len(want))
	}
	var missing []string
	for _, old := range want {
		if !slices.ContainsFunc(got, func(run recordedRun) bool { return old.name == run.name }) {
			missing = append(missing, old.name)
		}
	}
	if missing != nil {
		t.Errorf("%s has also the runs %s", requestsGolden, strings.Join(missing, ", "))
	}
}

// difference describes the first difference of a run to an old one.
func (r recordedRun) difference(old recordedRun) string {
	for i := range min(len(r.bodies), len(old.bodies)) {
		if r.bodies[i] != old.bodies[i] {
			return fmt.Sprintf("request %d of %d (-want +got):\n%s", i+1, len(r.bodies), bodyDifference(old.bodies[i], r.bodies[i]))
		}
	}
	if len(r.bodies) > len(old.bodies) {
		return fmt.Sprintf("%d requests, not %d; the next one is\n%s", len(r.bodies), len(old.bodies), r.bodies[len(old.bodies)])
	}
	return fmt.Sprintf("%d requests, not %d; the missing one is\n%s", len(r.bodies), len(old.bodies), old.bodies[len(r.bodies)])
}

// bodyDifference compares two bodies as JSON. If only their bytes differ, it shows them.
func bodyDifference(want, got string) string {
	var values [2]any
	for i, body := range []string{want, got} {
		if err := json.Unmarshal([]byte(body), &values[i]); err != nil {
			values[i] = body
		}
	}
	if diff := cmp.Diff(values[0], values[1]); diff != "" {
		return diff
	}
	return "the same JSON in other bytes:\n-" + want + "\n+" + got
}

const (
	requestsGolden = "testdata/requests.golden"
	requestsBodies = "testdata/requests.gz"
)

// readRequests reads the golden files; there may be none before -update.
func readRequests(t *testing.T) map[string][]recordedRun {
	t.Helper()
	all := map[string][]recordedRun{}
	index, err := os.ReadFile(requestsGolden)
	if os.IsNotExist(err) {
		return all
	}
	file, openErr := os.Open(requestsBodies)
	if err != nil || openErr != nil {
		t.Fatal(err, openErr)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		bodies[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
	}
	for line := range strings.Lines(string(index)) {
		scenario, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		run, numbers, ok := strings.Cut(rest, ":")
		if !ok { // the hash of a body
			number, hash, _ := strings.Cut(rest, " ")
			if hashOf(bodies[scenario+" "+number]) != hash {
				t.Fatalf("%s does not have the body %s of %s", requestsBodies, rest, scenario)
			}
			continue
		}
		recorded := recordedRun{name: run}
		for number := range strings.FieldsSeq(numbers) {
			recorded.bodies = append(recorded.bodies, bodies[scenario+" "+number])
		}
		all[scenario] = append(all[scenario], recorded)
	}
	return all
}

func hashOf(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body))) }

// writeRequests writes the golden files: the recordings of this test, and the old ones of
// the scenarios that it did not run.
func writeRequests(t *testing.T, old, recorded map[string][]recordedRun) {
	t.Helper()
	var index bytes.Buffer
	bodies := &txtar.Archive{}
	for _, s := range requestScenarios {
		all := recorded[s.name]
		if all == nil {
			all = old[s.name]
		}
		numbers := map[string]int{}
		var runs strings.Builder
		for _, run := range all {
			fmt.Fprintf(&runs, "%s %s:", s.name, run.name)
			for _, body := range run.bodies {
				if numbers[body] == 0 {
					n := len(numbers) + 1
					numbers[body] = n
					fmt.Fprintf(&index, "%s %d %s\n", s.name, n, hashOf(body))
					bodies.Files = append(bodies.Files, txtar.File{Name: s.name + " " + strconv.Itoa(n), Data: []byte(body)})
				}
				fmt.Fprintf(&runs, " %d", numbers[body])
			}
			runs.WriteByte('\n')
		}
		index.WriteString(runs.String())
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(txtar.Format(bodies)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{requestsGolden: index.Bytes(), requestsBodies: compressed.Bytes()} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
