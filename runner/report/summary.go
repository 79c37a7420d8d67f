package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// Summary writes how a run ended.
func Summary(w io.Writer, s runner.Summary, dir string) error {
	var parts []string
	for _, c := range []trajectories.Class{
		trajectories.Submitted, trajectories.Limit, trajectories.Provider,
		trajectories.Environment, trajectories.Interrupted, trajectories.Internal,
	} {
		if n := s.Classes[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	if s.Unstarted > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", s.Unstarted))
	}
	results := s.Classes[trajectories.Submitted] + s.Classes[trajectories.Limit]
	_, err := fmt.Fprintf(w, "%d of %d instances have a result: %s\n$%.2f in %v; files in %s\n",
		results, s.Instances, strings.Join(parts, ", "), float64(s.Cost), s.Elapsed.Round(100*time.Millisecond), dir)
	return err
}
