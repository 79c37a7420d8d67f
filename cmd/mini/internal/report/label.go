package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/doc"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/labels"
	"github.com/minibench/mini/runner/report"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/verdicts"
)

// NewLabel returns the command mini label.
func NewLabel(a *app.App) *cobra.Command {
	var remove []string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "label RUN [ID [WORD...]]",
		Short: "Label instances of a run, or list their labels",
		Long: `Adds your own labels to an instance of a run, or removes them with -d. Without
WORD and -d it lists the labels of the instance, without ID those of all
instances.

A label has at most 40 of the characters a-z 0-9 - _ . /; an instance has at most
50 labels. The labels are in labels.json in the run's folder. A batch may run in
the folder meanwhile, and resuming and grading keep the labels. mini report -i
shows them, and mini inspect finds them: --filter label:flaky.`,
		Example: `  mini label runs/first django__django-11099 flaky look-again
  mini label runs/first django__django-11099 -d flaky
  mini label runs/first`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return usage.Errorf("mini label takes the folder of a run; see mini label --help")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			given, err := labelsFor(args, remove)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(a.Out, struct {
					Format string        `json:"format"`
					Run    string        `json:"run"`
					Labels labels.Labels `json:"labels"`
				}{labels.Format, args[0], given})
			}
			rows := [][]string{{"INSTANCE", "LABELS"}}
			for _, id := range slices.SortedFunc(maps.Keys(given), datasets.CompareNatural) {
				rows = append(rows, []string{id, strings.Join(given[id], ", ")})
			}
			d := &doc.Doc{}
			if len(rows) == 1 {
				d.Line(0, "no labels")
			} else {
				d.Table("ls", rows)
			}
			return a.PrintNames(d)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&remove, "delete", "d", nil, "remove this label `WORD`; repeatable")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// labelsFor executes mini label and returns the labels to print: those of the
// instance in args, or of all instances.
func labelsFor(args, remove []string) (labels.Labels, error) {
	dir := args[0]
	run, err := runs.Open(dir)
	if err != nil {
		return nil, cmdutil.RunFolderError(dir, err)
	}
	if len(args) == 1 {
		if len(remove) > 0 {
			return nil, usage.Errorf("name the instance that loses the label: mini label %s ID -d %s", text.ShellQuote(dir), remove[0])
		}
		all, err := run.Labels()
		return all, usage.Wrap(err)
	}
	id, add := args[1], args[2:]
	if err := checkInstance(run, id); err != nil {
		return nil, usage.Wrap(err)
	}
	var words []string
	if len(add)+len(remove) > 0 {
		words, err = labels.Change(dir, id, add, remove)
	} else {
		var all labels.Labels
		all, err = run.Labels()
		words = all[id]
	}
	if err != nil || len(words) == 0 {
		return labels.Labels{}, usage.Wrap(err)
	}
	return labels.Labels{id: words}, nil
}

// checkInstance returns an error if the run has neither an attempt at an instance
// nor a verdict on it.
func checkInstance(run *runs.Run, id string) error {
	_, err := report.FindInstance(run, id)
	if err != nil && len(verdicts.ReadInstance(run.Dir, id, nil)) > 0 {
		return nil
	}
	return err
}
