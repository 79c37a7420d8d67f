package export_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories/export"
)

// BenchmarkRun exports 20 attempts of 40 steps with 3 KB of output each. Its MB/s are
// written bytes. It is part of make bench.
func BenchmarkRun(b *testing.B) {
	output := strings.Repeat("FAILED \"test_x\" == naïve in 0.12s\n", 3000/36)
	var items []*export.Item
	for i := range 20 {
		s := newAttempt("model-b", true)
		for n := range 40 {
			id := fmt.Sprintf("call_%d", n)
			s.reply("some thought", "I look.", call(id, "sed -n 1,200p file.py")).result(id, output)
		}
		s.reply("", "", call("end", "submit")).withOutcome("Submitted")
		items = append(items, item(fmt.Sprintf("owner__lib-%d", i), 1, "", s))
	}
	tools, err := export.EncodeTools(callAttempt().t.Header.Tools)
	require.NoError(b, err)
	for name, o := range map[string]export.Options{
		"openai": {Format: export.OpenAI}, "sharegpt": {Format: export.ShareGPT}, "parquet": {Format: export.OpenAI, Parquet: true},
	} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				dir := filepath.Join(b.TempDir(), fmt.Sprint(n))
				report, err := export.Run(b.Context(), export.Config{Options: o, Dir: dir, Workers: 2, Tools: []json.RawMessage{tools}}, attempts(items...))
				require.NoError(b, err)
				b.SetBytes(report.Bytes)
			}
		})
	}
}
