package trajectories_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/minibench/mini/internal/corpustest"
)

// realFiles returns public trajectories, which are not part of the repository.
func realFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	return corpustest.Glob(t, corpustest.RealData(t, "trajectories"), patterns...)
}

// trajFile is the part of a .traj.json that tests check.
type trajFile struct {
	Info struct {
		ExitStatus string `json:"exit_status"`
		Stats      struct {
			Cost  float64 `json:"instance_cost"`
			Calls int     `json:"api_calls"`
		} `json:"model_stats"`
	} `json:"info"`
	Messages []struct {
		Content string `json:"content"`
		Extra   struct {
			RawOutput string `json:"raw_output"`
		} `json:"extra"`
	} `json:"messages"`
}

func loadTraj(path string) (file trajFile, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	return file, err
}
