package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/trajectories"
)

// Summary writes how a session ended, in two lines. A Glance says more, and
// needs the run's files for it.
func Summary(w io.Writer, s runner.Summary, dir string) error {
	results := s.Classes[trajectories.Submitted] + s.Classes[trajectories.Limit]
	_, err := fmt.Fprintf(w, "%s\ncost %s in %v; files in %s\n",
		headline(results, s.Instances, counts(s.Classes, s.Unstarted)),
		Spent(s.Spent(), s.Unpriced == 0), s.Elapsed.Round(100*time.Millisecond), Printable(dir))
	return err
}

// headline is the first thing to know of a run.
func headline(results, instances int, parts []string) string {
	text := fmt.Sprintf("%d of %d instances have a result", results, instances)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// counts are the classes that occur, in their order.
func counts(classes map[trajectories.Class]int, notStarted int) []string {
	var parts []string
	for _, c := range classOrder {
		if n := classes[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	if notStarted > 0 {
		parts = append(parts, fmt.Sprintf("%d not started", notStarted))
	}
	return parts
}
