package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/verdicts"
)

// repoOf are the parts of an instance's id that name its repository.
var repoOf = regexp.MustCompile(`^(.+?)__(.+)-[^-]*$`)

// WriteRepos shows how many instances of each repository are resolved, as
// leaderboards ask. The repository is told from the ids; without a verdict an
// instance is not resolved.
func (s Score) WriteRepos(w io.Writer, width int) error {
	type count struct{ resolved, of int }
	counts := map[string]*count{}
	add := func(id string, resolved bool) {
		name := "others"
		if m := repoOf.FindStringSubmatch(id); m != nil {
			name = m[1] + "/" + m[2]
		}
		if counts[name] == nil {
			counts[name] = &count{}
		}
		counts[name].of++
		if resolved {
			counts[name].resolved++
		}
	}
	for _, c := range s.Classes {
		for _, id := range c.IDs {
			add(id, c.Class == verdicts.Resolved)
		}
	}
	for _, id := range s.NotEvaluated {
		add(id, false)
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, datasets.Natural)
	rows := [][]string{{"repository", "resolved", ""}}
	for _, name := range names {
		c := counts[name]
		rows = append(rows, []string{name, fmt.Sprintf("%d of %d", c.resolved, c.of), percent(float64(c.resolved) / float64(c.of))})
	}
	if s.NoResult > 0 {
		rows = append(rows, []string{"no submission", fmt.Sprintf("0 of %d", s.NoResult), ""})
	}
	_, err := io.WriteString(w, strings.TrimRight(table(width, []column{{shrink: true}, {right: true}, {right: true}}, rows), "\n")+"\n")
	return err
}
