package rewards_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/rewards"
	"github.com/minibench/mini/trajectories"
)

// gateway keeps the bodies that it got by path. Its first replies have the statuses of fail.
type gateway struct {
	mu   sync.Mutex
	fail []int
	got  map[string][]string
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.fail) > 0 {
		status := g.fail[0]
		g.fail = g.fail[1:]
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		return
	}
	g.got[r.URL.Path] = append(g.got[r.URL.Path], string(body))
}

// writeAttempt writes the journal of an attempt that has ended, and returns the event of its end.
func writeAttempt(t *testing.T, folder *runner.Folder, id string, n int, class trajectories.Class) runner.Event {
	t.Helper()
	path := folder.Journal(id, n)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.Create(path)
	require.NoError(t, err)
	j, err := trajectories.NewJournal(f, trajectories.Header{InstanceID: id, Attempt: n, Repetition: 1, ModelName: "m", Session: "s-" + id})
	require.NoError(t, err)
	out := trajectories.Outcome{Class: class, ExitStatus: "X"}
	_, err = j.Append(trajectories.TypeOutcome, out)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return runner.Event{Type: runner.AttemptFinished, Instance: id, Attempt: n, Outcome: &out}
}

// open returns a Sender for the folder; its warnings are appended to the list.
func open(t *testing.T, folder *runner.Folder, url, body string, warnings *[]string) *rewards.Sender {
	t.Helper()
	tmpl, err := rewards.ParseBody(body)
	require.NoError(t, err)
	var mu sync.Mutex
	s, err := rewards.Open(rewards.Config{
		Folder: folder, URL: url, Body: tmpl,
		IsEvaluated: func(id string) bool { return id == "evaluated" },
		Warn: func(id string, err error) {
			mu.Lock()
			defer mu.Unlock()
			*warnings = append(*warnings, id+": "+err.Error())
		},
	})
	require.NoError(t, err)
	return s
}

func TestRewards(t *testing.T) {
	t.Parallel()
	g := &gateway{got: map[string][]string{}, fail: []int{503}}
	server := httptest.NewServer(g)
	defer server.Close()
	folder, err := runner.Open(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, err)
	defer folder.Close()
	url := server.URL + "/sessions/{session}/{instance}/reward_info"

	var warnings []string
	s := open(t, folder, url, "", &warnings)
	s.Event(writeAttempt(t, folder, "accident", 1, trajectories.Environment)) // the first request is refused
	retried := writeAttempt(t, folder, "retried", 1, trajectories.Environment)
	retried.WillRetry = true
	s.Event(retried)
	s.Event(writeAttempt(t, folder, "evaluated", 1, trajectories.Submitted)) // waits for its verdict
	s.Close(t.Context())
	assert.Equal(t, []string(nil), warnings)
	want := map[string][]string{"/sessions/s-accident/accident/reward_info": {
		`{"reward_info": {"reward": null, "acc": null, "finished": false, "class": "environment", "exit_status": "X", "verdict": "", "instance_id": "accident", "attempt": 1}}`,
	}}
	assert.Equal(t, want, g.got)

	// The next session sends the verdict, and nothing twice.
	s = open(t, folder, url, `{"r": {{json .Reward}}, "by": {{json .Class}}}`, &warnings)
	s.Event(writeAttemptAgain(trajectories.Environment, "accident"))
	s.Event(writeAttemptAgain(trajectories.Submitted, "evaluated"))
	s.Event(runner.Event{Type: runner.Verdict, Instance: "evaluated", Verdict: "resolved"})
	s.Close(t.Context())
	want["/sessions/s-evaluated/evaluated/reward_info"] = []string{`{"r": null, "by": "submitted"}`} // no record of a verdict is in the folder
	assert.Equal(t, want, g.got)

	// A redirect is not followed, and a refusal is a warning that the next session tries again.
	for _, status := range []int{404, 307} {
		g.fail = []int{status}
		s = open(t, folder, url, "", &warnings)
		s.Event(writeAttempt(t, folder, "refused-"+http.StatusText(status)[:3], 1, trajectories.Provider))
		ctx, cancel := context.WithCancel(t.Context())
		if status == 307 { // repeated until the end of the run, like a server that cannot be reached
			cancel()
		}
		s.Close(ctx)
		cancel()
	}
	assert.Equal(t, 2, len(warnings), "%v", warnings)
	data, err := os.ReadFile(filepath.Join(folder.Dir, "rewards.jsonl"))
	require.NoError(t, err)
	var instances []string
	for line := range strings.Lines(string(data)) {
		var r struct {
			Instance string `json:"instance_id"`
			Tries    int    `json:"tries"`
			Error    string `json:"error"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		instances = append(instances, r.Instance)
		if r.Instance == "accident" && (r.Tries != 2 || r.Error != "") {
			t.Errorf("record %s", line)
		}
	}
	slices.Sort(instances)
	assert.Equal(t, []string{"accident", "evaluated", "refused-Not", "refused-Tem"}, instances)
}

// writeAttemptAgain returns the event of an attempt whose journal exists.
func writeAttemptAgain(class trajectories.Class, id string) runner.Event {
	return runner.Event{Type: runner.AttemptFinished, Instance: id, Attempt: 1, Outcome: &trajectories.Outcome{Class: class}}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"http://gateway/sessions/{session}/reward": true, "https://{instance}.example/": true, "http://gateway/{sesion}": false,
		"gateway/reward": false, "ftp://gateway/": false, "http://user:key@gateway/": false, "http://": false, "http://gateway/reward?key=secret": false,
	} {
		if err := rewards.CheckURL(url); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	for body, ok := range map[string]bool{"": true, `{"r": {{json .Reward}}}`: true, "{{.Rewards}}": false, "{{": false} {
		if _, err := rewards.ParseBody(body); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}
