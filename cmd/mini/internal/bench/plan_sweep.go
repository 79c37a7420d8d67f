package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/internal/text"
)

// sweepPlan describes what a sweep would do. --dry-run prints it as text or JSON.
type sweepPlan struct {
	Folder       string            `json:"folder"`
	Combinations []combinationPlan `json:"combinations"`
}

// combinationPlan describes what one combination of a sweep would do. The images are those of the
// first combination.
type combinationPlan struct {
	Name     string            `json:"combination"`
	Settings map[string]string `json:"settings"`
	Plan     plan              `json:"plan"`
}

// printPlans prints what the jobs would do. It returns an error if they cannot start.
func printPlans(ctx context.Context, s cmdutil.Streams, jobs []*Job) error {
	var images *dryrun.Images
	obstacle := ""
	sweep := sweepPlan{Folder: jobs[0].topFolder()}
	for _, j := range jobs {
		p, err := newPlan(ctx, j, images)
		if err != nil {
			return j.located(err)
		}
		if obstacle == "" {
			obstacle = p.Obstacle
		}
		if j.combination == nil {
			return dryrun.Print(s, j.JSON, p, p.text(), obstacle)
		}
		sweep.Combinations = append(sweep.Combinations, combinationPlan{j.name(), j.combination.settings, p})
		images = &sweep.Combinations[0].Plan.Images
	}
	return dryrun.Print(s, jobs[0].JSON, sweep, sweep.text(), obstacle)
}

// text returns the plan as text: a line for each combination, and the plan of the first.
func (p sweepPlan) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sweep of %s below %s\n\n", combinationsText(len(p.Combinations)), text.Printable(p.Folder))
	rows := [][]string{{"combination", "attempts to run", "cost"}}
	attempts, total := 0, new(float64)
	for _, c := range p.Combinations {
		rows = append(rows, []string{c.Name, fmt.Sprint(c.Plan.Missing), ceilingText(c.Plan.Cost.Ceiling)})
		attempts += c.Plan.Missing
		if total != nil && c.Plan.Cost.Ceiling != nil {
			*total += *c.Plan.Cost.Ceiling
		} else {
			total = nil
		}
	}
	rows = append(rows, []string{"total", fmt.Sprint(attempts), ceilingText(total)})
	b.WriteString(cmdutil.FormatColumns(rows))
	for _, c := range p.Combinations {
		if c.Plan.Obstacle != "" {
			fmt.Fprintf(&b, "\n%s cannot start: %s\n", c.Name, text.Printable(c.Plan.Obstacle))
		}
	}
	fmt.Fprintf(&b, "\nThe plan of the first combination:\n\n%s", p.Combinations[0].Plan.text())
	return b.String()
}

// ceilingText returns the limit of a cost without retries; nil means that there is none.
func ceilingText(ceiling *float64) string {
	switch {
	case ceiling == nil:
		return "no limit"
	case *ceiling == 0:
		return "none"
	}
	return fmt.Sprintf("at most $%.2f", *ceiling)
}
