package cli_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/datasets/hub/hubtest"
)

// hubRow is a row with the columns of SWE-bench.
type hubRow struct {
	ID               string `parquet:"instance_id"`
	Repo             string `parquet:"repo"`
	BaseCommit       string `parquet:"base_commit"`
	ProblemStatement string `parquet:"problem_statement"`
	Image            string `parquet:"image"`
	FailToPass       string `parquet:"FAIL_TO_PASS"`
}

// newTestHub starts a hub on loopback with a few datasets. Their rows name the given
// image.
func newTestHub(t *testing.T, image string) *hubtest.Server {
	t.Helper()
	shard := func(repo string, n int) []byte {
		var rows []hubRow
		for i := range n {
			rows = append(rows, hubRow{
				ID: fmt.Sprintf("%s__%s-%d", repo, repo, 12907+i), Repo: repo + "/" + repo, BaseCommit: hubtest.Commit(i),
				ProblemStatement: fmt.Sprintf("%s: made.py prints %d, and should print %d.", repo, i, i+1),
				Image:            image, FailToPass: `["test_made.py::test_print"]`,
			})
		}
		var b bytes.Buffer
		if err := parquet.Write(&b, rows); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	s := hubtest.New(t)
	s.Add("SWE-bench/SWE-bench_Verified", hubtest.Commit(7), map[string][]byte{
		"README.md":                        []byte("# Verified\n"),
		"data/test-00000-of-00002.parquet": shard("astropy", 3),
		"data/test-00001-of-00002.parquet": shard("django", 3),
	})
	s.Add("SWE-bench/SWE-bench_Lite", hubtest.Commit(8), map[string][]byte{
		"data/dev-00000-of-00001.parquet":  shard("marshmallow", 2),
		"data/test-00000-of-00001.parquet": shard("astropy", 2),
	})
	s.Add("org/two", hubtest.Commit(9), map[string][]byte{"a/train.jsonl": []byte("{}\n"), "a/validation.jsonl": []byte("{}\n")})
	s.Add("org/words", hubtest.Commit(9), map[string][]byte{"README.md": []byte("only words\n")})
	s.Add("org/torn", hubtest.Commit(9), map[string][]byte{"data/test-00000-of-00001.parquet": []byte("PAR1 and no more")})
	s.Add("org/private", hubtest.Commit(9), map[string][]byte{"test.jsonl": []byte("{}\n")})
	s.SetPrivate("org/private")
	s.Add("org/gated", hubtest.Commit(9), map[string][]byte{"test.jsonl": []byte("{}\n")})
	s.SetGated("org/gated")
	large := append(shard("large", 3), make([]byte, 0)...)
	s.Add("org/large", hubtest.Commit(9), map[string][]byte{"test.jsonl.gz": large, "more/test.jsonl.gz": make([]byte, 200_000)})
	return s
}
