package logs_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
	"github.com/minibench/mini/runner/grade/logs"
)

// BenchmarkRealLogs decodes and parses the real logs, each with the parser of its row.
func BenchmarkRealLogs(b *testing.B) {
	texts, total := realLogs(b)
	b.SetBytes(int64(total))
	for b.Loop() {
		for parser, raws := range texts {
			for _, raw := range raws {
				text, err := logs.Decode(raw)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := logs.Parse(parser, text, subjects[0]); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// realLogs returns the stored logs of evaluations, by parser.
func realLogs(b *testing.B) (texts map[string][][]byte, total int) {
	b.Helper()
	parsers := map[string]string{}
	for _, set := range []string{"verified", "lite", "multilingual", "multimodal-dev"} {
		f := openGzip(b, corpustest.RealData(b, "swebench/"+set+".jsonl.gz"))
		for dec := json.NewDecoder(f); dec.More(); {
			var row struct {
				ID     string `json:"instance_id"`
				Parser string `json:"log_parser"`
			}
			if err := dec.Decode(&row); err != nil {
				b.Fatal(err)
			}
			parsers[row.ID] = row.Parser
		}
	}
	texts = map[string][][]byte{}
	for _, file := range corpustest.Glob(b, corpustest.RealData(b, "eval-logs"), "*/*/test_output.txt.gz") {
		id := filepath.Base(filepath.Dir(file))
		var raw strings.Builder
		if _, err := io.Copy(&raw, openGzip(b, file)); err != nil {
			b.Fatal(err)
		}
		if parsers[id] == "" {
			b.Fatalf("no row for %s", id)
		}
		texts[parsers[id]] = append(texts[parsers[id]], []byte(raw.String()))
		total += raw.Len()
	}
	return texts, total
}

func openGzip(b *testing.B, path string) io.Reader {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() }) // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	return z
}
