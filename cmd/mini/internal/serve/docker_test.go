package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/env/docker/dockertest"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

const demoInstance = "minidemo__spans-23"

// TestVerdicts: a reward of 1 or 0 is the verdict of the tests, and an accident has none.
func TestVerdicts(t *testing.T) {
	dockertest.Image(t)
	g, url := newGateway(t)
	rewardURL := "run.reward_url=" + strings.TrimSuffix(url, "v1") + "reward_info"
	s := startWith(t, filepath.Join(t.TempDir(), "serve"), "--subset", "demo", "-c", rewardURL, "-c", "environment.helper_dir="+dockertest.HelperDir(t))
	gold := goldPatch(t)
	for name, tt := range map[string]struct {
		patch  string
		class  string
		reward any
	}{
		"solution":     {gold, "resolved", 1.0},
		"no patch":     {"", "empty", 0.0},
		"not a patch":  {"bad\n", "apply_failed", 0.0},
		"another file": {"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n", "unresolved", 0.0},
	} {
		body, _ := json.Marshal(map[string]string{"instance": demoInstance, "patch": tt.patch})
		status, reply := s.do("POST", "/verify", string(body))
		if status != 200 || reply["class"] != tt.class || reply["reward"] != tt.reward {
			t.Errorf("%s: status %d, %v", name, status, reply)
		}
		_, again := s.do("POST", "/verify", string(body))
		assert.Equal(t, reply, again, "%s: the repeated request", name)
	}

	// Kill the container of one of eight attempts while its model is asked.
	g.hold = make(chan struct{})
	status, reply := s.do("POST", "/rollouts", fmt.Sprintf(`{"instance": %q, "model": "policy", "base_url": %q, "k": 8}`, demoInstance, url))
	require.Equal(t, 202, status, "reply %v", reply)
	id, _ := reply["id"].(string)
	docker := dockertest.Client(t)
	own := filters.NewArgs(filters.Arg("label", "mini.run="+envopen.RunLabel(filepath.Join(s.dir, "rollouts", id))))
	<-g.asked
	<-g.asked
	list, err := docker.ContainerList(t.Context(), container.ListOptions{Filters: own})
	require.NoError(t, err)
	require.Equal(t, 2, len(list), "containers of the rollout")
	require.NoError(t, docker.ContainerKill(t.Context(), list[0].ID, "KILL"))
	g.mu.Lock()
	close(g.hold)
	g.hold = nil
	g.mu.Unlock()
	attempts, _ := s.wait(id, "")["attempts"].([]any)
	rewards, classes := map[string]any{}, map[string]int{}
	for _, a := range attempts {
		a, _ := a.(map[string]any)
		classes[fmt.Sprint(a["class"], " ", a["reward"])]++
		rewards[fmt.Sprint(a["session"])] = a["reward"]
	}
	assert.Equal(t, map[string]int{"environment <nil>": 1, "submitted 0": 7}, classes, "the group")
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Equal(t, rewards, g.rewards, "rewards that the gateway got")
}

func goldPatch(t *testing.T) string {
	t.Helper()
	for line := range bytes.Lines(demo.Rows()) {
		var row struct {
			ID    string `json:"instance_id"`
			Patch string `json:"patch"`
		}
		require.NoError(t, json.Unmarshal(line, &row))
		if row.ID == demoInstance {
			return row.Patch
		}
	}
	t.Fatal("the demo has no such row")
	return ""
}
