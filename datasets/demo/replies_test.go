package demo_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
)

const marker = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

var block = regexp.MustCompile("(?s)```bash\n(.*?)\n```")

// replayResult is the result of the scripted replies for one instance.
type replayResult struct {
	replies, formatErrors, failures, timeouts int
	cost                                      model.Cost
	submission                                string // the output after the marker; empty without a marker
}

// TestRepliesFixTheRepositoriesHere runs the replies to the instances in a folder of
// this machine, as on a machine without a container engine. pytest may be missing here,
// so the tests of the repositories may fail to run; the patches must not depend on them.
func TestRepliesFixTheRepositoriesHere(t *testing.T) {
	for _, in := range instances(t) {
		t.Run(in.ID, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, demo.Unpack(t.Context(), in.ID, dir))
			box, err := local.New(t.Context(), local.Config{Dir: dir, Timeout: time.Minute})
			require.NoError(t, err)
			defer func() {
				assert.NoError(t, box.Close(t.Context()))
			}()
			result := replay(t, box, in)
			if result.submission == "" || result.submission != git(t, dir, "diff", "--", source(t, in))+"\n" {
				t.Errorf("submission:\n%s", result.submission)
			}
		})
	}
}

// server matches the reply whose command never ends, because it starts a server.
var server = regexp.MustCompile(`^python3 -m waypost `)

// source returns the one source file that the maintainers' patch changes.
func source(t *testing.T, in datasets.Instance) string {
	t.Helper()
	var files []string
	for _, m := range changed.FindAllStringSubmatch(in.Patch, -1) {
		if strings.HasSuffix(m[1], ".py") {
			files = append(files, m[1])
		}
	}
	require.Equal(t, 1, len(files), "%s: the solution changes %q, want file", in.ID, files)
	return files[0]
}

// replay runs the commands of the replies as the agent does, without its limits.
func replay(t *testing.T, box env.Environment, in datasets.Instance) replayResult {
	t.Helper()
	var result replayResult
	for _, reply := range script(t, in.ID) {
		result.replies++
		result.cost += reply.Cost
		blocks := block.FindAllStringSubmatch(reply.Message.Content, -1)
		if len(blocks) != 1 {
			result.formatErrors++
			continue
		}
		command := env.Command{Script: blocks[0][1]}
		if server.MatchString(command.Script) {
			command.Timeout = time.Second
		}
		res, err := box.Execute(t.Context(), command)
		if err != nil {
			t.Fatalf("reply %d: %v", result.replies, err)
		}
		switch {
		case res.TimedOut:
			result.timeouts++
		case res.ExitCode != 0:
			result.failures++
			t.Logf("reply %d: exit code %d: %s", result.replies, res.ExitCode, res.Output)
		case len(res.Background) > 0:
			t.Errorf("reply %d leaves %v running", result.replies, res.Background)
		}
		result.submission = ""
		if patch, found := strings.CutPrefix(string(res.Output), marker+"\n"); found && res.ExitCode == 0 {
			result.submission = patch
		}
	}
	return result
}

// script returns all scripted replies to an instance.
func script(t *testing.T, id string) []model.Reply {
	t.Helper()
	s, err := scripted.Parse("replies.yaml", demo.Replies())
	require.NoError(t, err)
	m, err := s.For(id)
	require.NoError(t, err)
	var replies []model.Reply
	for len(replies) < 20 {
		r, err := m.Query(t.Context(), nil)
		if err != nil {
			return replies
		}
		replies = append(replies, r)
	}
	t.Fatalf("%s has more than 20 replies", id)
	return nil
}
