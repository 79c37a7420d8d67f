// Package export writes attempts as training data in the formats of common trainers, and
// as files for other tools.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/minibench/mini/trajectories"
)

// Item is an attempt that is exported.
type Item struct {
	*trajectories.Attempt
	// Journal is the path of the journal, SHA256 the checksum of the file in hex.
	Journal, SHA256 string
	InstanceID      string
	Number          int // of the attempt
	// Repetition numbers the repetitions of the instance, from 1.
	Repetition int
	// Selected is set if the attempt counts for its repetition.
	Selected bool
	// Repo is "owner/name" from the dataset or the instance ID; empty if unknown.
	Repo string
	// Dataset is the dataset of the run, as named in the manifest of the run.
	Dataset string
	// Verdict is the result of the evaluation ("resolved", "unresolved", ...); empty if
	// the attempt was not evaluated.
	Verdict string
	// Reward is the reward that counts of a Harbor task; nil for other attempts.
	Reward *float64
	// Flags are the reasons why the evaluation flagged the submission.
	Flags []string
	// Tokens is the length of the conversation. It is an estimate if the user selected
	// a tokenizer or a maximum, else the sum of the provider's counts for the last
	// prompt and reply. 0 means unknown.
	Tokens int64

	source AttemptSource // from which the attempt was read
}

// AttemptSource is an attempt that has not been read yet.
type AttemptSource struct {
	InstanceID string
	Number     int
	// MultipleAttempts is set if the export has several attempts of the same run on
	// the instance. File names then contain Number.
	MultipleAttempts bool
	// Folder is the name of the run if the export has several runs. Files of the
	// attempt are then in a folder of this name.
	Folder string
	// Run is the name of the run, which is unique in the export; empty for a file.
	// Requested is the number of repetitions that the run was to make; 0 if unknown.
	Run       string
	Requested int
	// Read reads the attempt. Run calls it concurrently.
	Read func() (*Item, error)
}

// Config configures an export. Run calls the functions sequentially, except Filter.
type Config struct {
	Options
	// Dir is the output folder. Run creates it only if the export succeeds.
	Dir string
	// Overwrite allows Run to replace an existing export in Dir.
	Overwrite bool
	// Filter examines an attempt and may change it. Run calls it concurrently. Run
	// then calls the returned functions in the order of the attempts; each returns the
	// attempts to export next: its own, none, or earlier ones too. If Filter is nil,
	// Run exports all attempts.
	Filter func(*Item) (accept func() []*Item)
	// FilterDone is called after the last attempt. If it returns an error, nothing is
	// exported. It may be nil.
	FilterDone func() error
	// Split returns the name of an attempt's split, one of Splits. If it is nil, there
	// is only one split.
	Split  func(*Item) string
	Splits []string
	// OnWritten is called for each attempt that was written, with its number of rows.
	// For DPO, the first of the attempts on an instance has all their rows, the others
	// have 0. OnWritten may be nil.
	OnWritten func(item *Item, split string, rows int)
	// Workers is the number of attempts that are read concurrently.
	Workers int
	// Tools are the sets of tools of all attempts, as EncodeTools returns them. The
	// columns of a parquet file depend on them.
	Tools []json.RawMessage
	// WriteManifest writes further files to the folder after all rows. It may be nil.
	WriteManifest func(dir string, r Report) error
	// OnProgress is called after each attempt, or for DPO each instance, that Filter
	// accepted. It may be nil.
	OnProgress func(Report)
}

// DefaultSplit is the name of the only split if Config.Splits is empty. Trainers use a
// file of this name as training data.
const DefaultSplit = "train"

// Report is the result of an export.
type Report struct {
	Attempts    int    `json:"attempts"` // all attempts
	Exported    int    `json:"exported"` // attempts that were written
	FilteredOut int    `json:"sifted"`   //nolint:misspell // attempts that Filter rejected; the key is in files on disk
	Rows        int    `json:"rows"`
	Bytes       int64  `json:"bytes"`
	Files       []File `json:"files"`
	// Dropped counts the attempts that could not be written, by SkipReason.
	Dropped map[string]int `json:"dropped,omitempty"`
	// Losses counts, by description, items that the format cannot represent and items
	// with other notes.
	Losses map[string]int `json:"losses,omitempty"`
	// ReadErrors has an error message for each attempt that could not be read.
	ReadErrors []string `json:"unread,omitempty"`
}

// File is an output file.
type File struct {
	Name  string `json:"name"`
	Split string `json:"split,omitempty"`
	Rows  int    `json:"rows,omitempty"`
	Bytes int64  `json:"bytes"`
}

// ErrNothingToExport is returned if Run exported no attempt. Config.Dir is then not
// created.
var ErrNothingToExport = errors.New("nothing to export")

// Run exports attempts in order. Attempts on the same instance must be adjacent. An
// attempt that cannot be read, or not written in the format, is not an error; the report
// has the reason.
func Run(ctx context.Context, cfg Config, attempts []AttemptSource) (Report, error) {
	e := &exporter{cfg: cfg, report: Report{Attempts: len(attempts), Dropped: map[string]int{}, Losses: losses{}}}
	err := e.run(ctx, attempts)
	return e.report, err
}

// exporter is the state of an export.
type exporter struct {
	cfg       Config
	format    format
	out       *folder
	shards    *shards                            // for formats with rows
	arguments []string                           // see toolColumns
	preds     map[string]trajectories.Prediction // for preds.json, by instance ID
	tables    *tables                            // for Table
	pending   []*Item                            // not yet written; several attempts only for DPO
	report    Report
}

func (e *exporter) run(ctx context.Context, attempts []AttemptSource) (err error) {
	if e.cfg.Options, err = e.cfg.Validate(); err != nil {
		return err
	}
	e.format, _ = formatByName(e.cfg.Format)
	e.shards = &shards{opts: e.cfg.Options, openShards: map[string]*shard{}, counts: map[string]int{}, splits: e.cfg.Splits}
	if len(e.shards.splits) == 0 {
		e.shards.splits = []string{DefaultSplit}
	}
	if e.cfg.Parquet && e.format.rows != nil {
		var tools parquet.Node
		if tools, e.arguments, err = toolColumns(e.cfg.Tools, e.cfg.ToolArguments); err != nil {
			return err
		}
		e.shards.columns = e.format.schema(tools, e.arguments)
	}
	e.preds = map[string]trajectories.Prediction{}
	if e.out, err = newFolder(e.cfg.Dir, e.cfg.Overwrite); err != nil {
		return err
	}
	defer e.out.cleanup()
	defer e.shards.closeFiles()
	e.shards.dir = e.out.tmp
	if e.format.name == Table {
		if e.tables, err = newTables(e.out.tmp, e.cfg.Parquet); err != nil {
			return err
		}
		defer e.tables.close()
	}
	if err := e.stream(ctx, attempts); err != nil {
		return err
	}
	return e.finish()
}

// finish completes the files and renames the folder.
func (e *exporter) finish() (err error) {
	r := &e.report
	switch {
	case e.format.rows != nil:
		r.Files, err = e.shards.finish()
	case e.format.name == Preds:
		err = e.writePredictions()
	case e.format.name == Table:
		r.Files, err = e.tables.finish()
		for _, f := range r.Files {
			r.Rows += f.Rows
		}
	}
	if err != nil {
		return err
	}
	r.FilteredOut = r.Attempts - r.Exported - len(r.ReadErrors)
	for _, n := range r.Dropped {
		r.FilteredOut -= n
	}
	for _, f := range r.Files {
		r.Bytes += f.Bytes
	}
	if r.Exported == 0 {
		return ErrNothingToExport
	}
	if e.format.name == ShareGPT {
		if err := writeDatasetInfo(e.out.tmp, r.Files); err != nil {
			return err
		}
	}
	if e.cfg.WriteManifest != nil {
		if err := e.cfg.WriteManifest(e.out.tmp, *r); err != nil {
			return err
		}
	}
	return e.out.commit()
}

// loadedItem is an attempt that was read and filtered, or an error.
type loadedItem struct {
	accept func() []*Item // returned by Config.Filter
	err    error
}

func (e *exporter) read(source AttemptSource) loadedItem {
	item, err := source.Read()
	if err != nil {
		return loadedItem{err: err}
	}
	item.source = source
	if e.cfg.Filter != nil {
		return loadedItem{accept: e.cfg.Filter(item)}
	}
	return loadedItem{accept: func() []*Item { return []*Item{item} }}
}

// stream reads attempts concurrently and writes the accepted ones in order.
func (e *exporter) stream(ctx context.Context, attempts []AttemptSource) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	// Workers attempts are read concurrently: the loop below waits for one, and the
	// others are in the queue.
	queue := make(chan chan loadedItem, max(e.cfg.Workers-1, 0))
	readers.Go(func() {
		defer close(queue)
		for _, a := range attempts {
			result := make(chan loadedItem, 1)
			select {
			case queue <- result:
			case <-ctx.Done():
				return
			}
			readers.Go(func() { result <- e.read(a) })
		}
	})
	for result := range queue {
		loaded := <-result
		if ctx.Err() != nil {
			break
		}
		if loaded.err != nil {
			e.report.ReadErrors = append(e.report.ReadErrors, loaded.err.Error())
			continue
		}
		for _, item := range loaded.accept() {
			if err := e.add(item); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := e.flush(); err != nil || e.cfg.FilterDone == nil {
		return err
	}
	return e.cfg.FilterDone()
}

// add writes the pending attempts, unless they are to be combined with item, and makes
// item pending. DPO combines the attempts on an instance.
func (e *exporter) add(item *Item) error {
	if e.format.name != DPO || len(e.pending) > 0 && e.pending[0].InstanceID != item.InstanceID {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.pending = append(e.pending, item)
	return nil
}

// flush writes the pending attempts.
func (e *exporter) flush() error {
	items, r := e.pending, &e.report
	if e.pending = nil; len(items) == 0 {
		return nil
	}
	w := &writer{opts: e.cfg.Options, format: e.format, losses: losses{}, arguments: e.arguments}
	split := ""
	if e.cfg.Split != nil {
		split = e.cfg.Split(items[0])
	}
	rows, err := e.write(w, items, split)
	reason, skipped := errors.AsType[SkipReason](err)
	switch {
	case skipped:
		r.Dropped[string(reason)] += len(items)
	case errors.Is(err, ErrOptions):
		return err
	case err != nil:
		return fmt.Errorf("export %s: %w", items[0].Journal, err)
	default:
		e.countWritten(w, items, split, rows)
	}
	if e.cfg.OnProgress != nil {
		e.cfg.OnProgress(*r)
	}
	return nil
}

// write writes the attempts and returns the number of rows.
func (e *exporter) write(w *writer, items []*Item, split string) (rows int, err error) {
	switch {
	case e.format.name == Preds:
		return 0, e.addPrediction(items[0])
	case e.format.name == Table:
		return 0, e.tables.add(items[0])
	case e.format.rows == nil:
		f, err := e.writeFile(items[0], w.losses)
		if err == nil {
			e.report.Files = append(e.report.Files, f)
		}
		return 0, err
	}
	newRows, err := e.format.rows(w, items)
	if err != nil {
		return 0, err
	}
	return len(newRows), e.shards.put(split, newRows)
}

// countWritten updates the report after attempts were written.
func (e *exporter) countWritten(w *writer, items []*Item, split string, rows int) {
	for _, reason := range w.unpaired {
		e.report.Dropped[string(reason)]++
	}
	items = slices.DeleteFunc(items, func(item *Item) bool { _, ok := w.unpaired[item]; return ok })
	e.report.Exported += len(items)
	e.report.Rows += rows
	for name, n := range w.losses {
		e.report.Losses[name] += n
	}
	for _, item := range items {
		if e.cfg.OnWritten != nil {
			e.cfg.OnWritten(item, split, rows)
		}
		rows = 0 // the rows for DPO count only for the first attempt
	}
}
