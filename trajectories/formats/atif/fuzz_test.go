package atif_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// addSeeds adds documents that mini wrote, and small documents of other agents.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"schema_version":"ATIF-v1.6","agent":{"name":"a","version":"1","tool_definitions":[{}]},"steps":[` +
		`{"step_id":1,"source":"user","message":[{"type":"text","text":"t"},{"type":"image","source":{"media_type":"image/png","path":"data:image/png;base64,AA=="}}]},` +
		`{"step_id":"2","source":"agent","message":"","timestamp":"2025-10-16","is_copied_context":true,"metrics":{"cost_usd":1e3,"logprobs":[true]},` +
		`"tool_calls":[{"tool_call_id":"","function_name":"bash","arguments":{ "command" : "ls" }}],"observation":{"results":[{},{"source_call_id":"","content":[]}]}}],` +
		`"subagent_trajectories":[{"trajectory_id":"t","agent":{"name":"","version":""},"steps":[{"step_id":1,"source":"system","message":""}]}]}`))
	f.Add([]byte(`{"steps":[null,1,"",[],{}],"agent":null}`))
}

// FuzzRead checks that a document that was read can be written, and that reading and
// writing it repeatedly does not change it.
func FuzzRead(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := formats.Read("f.json", data)
		if err != nil {
			return
		}
		first := rewrite(t, file)
		reread, err := formats.Read("f.json", first)
		if err != nil {
			t.Fatalf("cannot read the written document: %v\n%s", err, first)
		}
		if second := rewrite(t, reread); !bytes.Equal(rewriteDocument(t, second), second) {
			t.Errorf("differs each time:\n%s", second)
		}
	})
}

// rewriteDocument reads a document and writes it again.
func rewriteDocument(t *testing.T, data []byte) []byte {
	t.Helper()
	f, err := formats.Read("f.json", data)
	require.NoError(t, err)
	return rewrite(t, f)
}

// rewrite writes a file that was read as a document.
func rewrite(t *testing.T, f *formats.File) []byte {
	t.Helper()
	tr, err := trajectories.Fold(f.Records)
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = atif.Write(&b, tr, "")
	require.NoError(t, err)
	return b.Bytes()
}
