package compare

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/minibench/mini/internal/text"
)

// WriteCSV writes a row for each instance with four columns for each run: the
// attempts with a verdict, the resolved and the missing attempts, and the cost
// of all tries in US dollars. Fields that a spreadsheet would take for a formula
// start with an apostrophe.
func (r *Result) WriteCSV(w io.Writer, runs []Run) error {
	c := csv.NewWriter(w)
	head := []string{"instance_id"}
	for _, run := range runs {
		for _, column := range []string{"attempts", "resolved", "missing", "cost"} {
			head = append(head, text.CSVField(run.Name+" "+column))
		}
	}
	if err := c.Write(head); err != nil {
		return err
	}
	all := make([]map[string]Instance, len(runs))
	seen := map[string]bool{}
	var ids []string
	for i, run := range runs {
		all[i] = byID(run)
		for _, in := range run.Instances {
			if !seen[in.ID] {
				seen[in.ID] = true
				ids = append(ids, in.ID)
			}
		}
	}
	for _, id := range ids {
		row := []string{text.CSVField(id)}
		for i := range runs {
			in, ok := all[i][id]
			if !ok {
				row = append(row, "", "", "", "")
				continue
			}
			n := in.count()
			row = append(row, fmt.Sprint(n.Attempts), fmt.Sprint(n.Resolved), fmt.Sprint(in.Missing()), strconv.FormatFloat(math.Round(in.Bill.Dollars*1e6)/1e6, 'f', -1, 64))
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
