package agent_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/protocol"
)

var rewrite = flag.Bool("golden", false, "rewrite the journals of attempts without abilities")

// moments are what differs from run to run.
var moments = regexp.MustCompile(`"(time|start|end)":"[^"]*"|"(duration|waited)":[0-9.e-]+|"times":\{[^}]*\}`)

// TestNothingIsAdded holds the journal of an attempt without any ability to what it
// was before there were some, byte for byte but for the times.
func TestNothingIsAdded(t *testing.T) {
	for _, speaks := range protocol.Names {
		t.Run(speaks, func(t *testing.T) {
			cfg := config()
			cfg.Protocol, cfg.StepLimit = speaks, 20
			p, err := cfg.Speaks()
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			w, rec := &worker{speaks: p, steps: 6, refused: 3, told: map[int]string{4: "be quick"}, talk: agent.NewTalk()}, begun()
			a.Run(t.Context(), agent.Session{Model: w, Environment: office{}, Recorder: rec, Talk: w.talk, Task: agent.Task{Text: "mend method_7"}})
			var got bytes.Buffer
			for _, r := range rec.records {
				got.WriteString(string(r.Type) + " ")
				got.Write(moments.ReplaceAll(r.Data, []byte("-")))
				got.WriteByte('\n')
			}
			path := filepath.Join("testdata", "off-"+speaks+".golden")
			if *rewrite {
				if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the journal (-before +now):\n%.3000s", diff)
			}
		})
	}
}
