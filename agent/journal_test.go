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

// times matches the values that differ between runs.
var times = regexp.MustCompile(`"(time|start|end)":"[^"]*"|"(duration|waited)":[0-9.e-]+|"times":\{[^}]*\}`)

// The journal of an attempt without optional features has not changed since
// before there were any, except for its times.
func TestJournalWithoutOptionalFeatures(t *testing.T) {
	for _, protocolName := range protocol.Names {
		t.Run(protocolName, func(t *testing.T) {
			cfg := config()
			cfg.Protocol, cfg.StepLimit = protocolName, 20
			p, err := cfg.ParseProtocol()
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			w, rec := &workingModel{protocol: p, steps: 6, plainStep: 3, userMessages: map[int]string{4: "be quick"}, inbox: agent.NewInbox()}, newRecorder()
			a.Run(t.Context(), agent.Session{Model: w, Environment: fakeSandbox{}, Recorder: rec, Inbox: w.inbox, Task: agent.Task{Text: "mend method_7"}})
			var got bytes.Buffer
			for _, r := range rec.records {
				got.WriteString(string(r.Type) + " ")
				got.Write(times.ReplaceAll(r.Data, []byte("-")))
				got.WriteByte('\n')
			}
			path := filepath.Join("testdata", "off-"+protocolName+".golden")
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
