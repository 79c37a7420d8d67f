// Package export writes attempts as training data, in the formats of common trainers,
// and as files for other tools.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/minibench/mini/trajectories"
)

// Item is an attempt to be exported.
type Item struct {
	*trajectories.Transcript
	// Journal is the path of the journal, SHA256 its checksum.
	Journal, SHA256 string
	InstanceID      string
	Attempt         int
	// Repetition numbers the repetitions of the instance, from 1.
	Repetition int
	// Repo is "owner/name" from the dataset or the instance ID; empty if unknown.
	Repo string
	// Dataset is the dataset of the run, as its manifest names it.
	Dataset string
	// Verdict is the class of the evaluation ("resolved", "unresolved", ...); empty
	// before one.
	Verdict string
	// Flags are the reasons why the evaluation flagged the submission.
	Flags []string
	// Tokens is the length of the conversation: as estimated, if a tokenizer was
	// selected, else as the provider counted the last prompt and reply; 0 if unknown.
	Tokens int64

	source Source // the source it was read from
}

// Source is an attempt that has not been read yet.
type Source struct {
	InstanceID string
	Number     int
	// MultipleAttempts is set if several attempts on the instance are exported from
	// the same run. Folder is the name of the run if there are several runs. Both are
	// used in file names.
	MultipleAttempts bool
	Folder           string
	// Read reads the attempt. It is called concurrently.
	Read func() (*Item, error)
}

// Config configures an export. The functions are called by the goroutine of Run,
// except Filter.
type Config struct {
	Options
	// Dir is the folder to create. It is created only if the export succeeds.
	Dir string
	// Overwrite allows Dir to be an existing export, which is replaced.
	Overwrite bool
	// Filter decides whether an attempt is exported, and may change it. It is called
	// concurrently. The function it returns is called in the order of the attempts,
	// and returns the attempts that are accepted by then: the same one, none, or
	// earlier ones too. FilterDone is called after the last attempt; if it returns an
	// error, nothing is exported. Both may be nil.
	Filter     func(*Item) (take func() []*Item)
	FilterDone func() error
	// Split returns the name of an attempt's split, one of Splits. If it is nil,
	// there is one split.
	Split  func(*Item) string
	Splits []string
	// OnWritten is called for each attempt that was written. Rows of several attempts
	// count for the first. It may be nil.
	OnWritten func(it *Item, split string, rows int)
	// Workers is the number of attempts that are read concurrently.
	Workers int
	// Tools are the sets of tools of all attempts. The columns of a parquet file
	// depend on them.
	Tools []json.RawMessage
	// WriteManifest writes further files to the folder after all rows are written.
	WriteManifest func(dir string, r Report) error
	// OnProgress is called after each attempt. It may be nil.
	OnProgress func(Report)
}

// DefaultSplit is the split if there are no others. Trainers use a file of this name
// as training data.
const DefaultSplit = "train"

// Report is the result of an export.
type Report struct {
	Attempts    int    `json:"attempts"` // found
	Exported    int    `json:"exported"` // attempts
	FilteredOut int    `json:"sifted"`   //nolint:misspell // attempts that the filter rejected; the key is in files on disk
	Rows        int    `json:"rows"`
	Bytes       int64  `json:"bytes"`
	Files       []File `json:"files"`
	// Dropped counts the attempts that could not be written, by reason.
	Dropped map[string]int `json:"dropped,omitempty"`
	// Losses counts information that the format cannot represent, and other notes, by
	// description.
	Losses map[string]int `json:"losses,omitempty"`
	// ReadErrors describes the attempts that could not be read.
	ReadErrors []string `json:"unread,omitempty"`
}

// File is an output file.
type File struct {
	Name  string `json:"name"`
	Split string `json:"split,omitempty"`
	Rows  int    `json:"rows,omitempty"`
	Bytes int64  `json:"bytes"`
}

// ErrNothingToExport is returned if no attempt was exported. No folder is created
// then.
var ErrNothingToExport = errors.New("nothing to export")

// Run exports attempts in order. Attempts on the same instance must be adjacent. The
// report lists attempts that could not be read, or not written in the format.
func Run(ctx context.Context, cfg Config, attempts []Source) (Report, error) {
	e := &exporter{cfg: cfg, report: Report{Attempts: len(attempts), Dropped: map[string]int{}, Losses: losses{}}}
	err := e.run(ctx, attempts)
	return e.report, err
}

// exporter is the state of an export.
type exporter struct {
	cfg     Config
	format  format
	out     *folder
	shards  *shards                            // for formats with rows
	preds   map[string]trajectories.Prediction // for preds.json
	pending []*Item                            // attempts on one instance, for formats that combine them
	report  Report
}

func (e *exporter) run(ctx context.Context, attempts []Source) (err error) {
	if e.cfg.Options, err = e.cfg.Validate(); err != nil {
		return err
	}
	e.format, _ = formatByName(e.cfg.Format)
	e.shards = &shards{opts: e.cfg.Options, enc: newEncoder(), openShards: map[string]*shard{}, counts: map[string]int{}, splits: e.cfg.Splits}
	if len(e.shards.splits) == 0 {
		e.shards.splits = []string{DefaultSplit}
	}
	if e.cfg.Parquet {
		tools, args, err := toolColumns(e.cfg.Tools, e.cfg.ToolArguments)
		if err != nil {
			return err
		}
		e.shards.schema = newSchema(e.format.columns(tools, args))
	}
	e.preds = map[string]trajectories.Prediction{}
	if e.out, err = newFolder(e.cfg.Dir, e.cfg.Overwrite); err != nil {
		return err
	}
	defer e.out.abandon()
	defer e.shards.abandon()
	e.shards.dir = e.out.tmp
	if err := e.stream(ctx, attempts); err != nil {
		return err
	}
	return e.finish()
}

// finish completes the files and the folder.
func (e *exporter) finish() (err error) {
	r := &e.report
	switch {
	case e.format.rows != nil:
		r.Files, err = e.shards.finish()
	case e.format.name == Preds:
		err = e.writePredictions()
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
	accept func() []*Item
	err    error
}

func (e *exporter) read(a Source) loadedItem {
	it, err := a.Read()
	if err != nil {
		return loadedItem{err: err}
	}
	it.source = a
	if e.cfg.Filter != nil {
		return loadedItem{accept: e.cfg.Filter(it)}
	}
	return loadedItem{accept: func() []*Item { return []*Item{it} }}
}

// stream reads attempts concurrently and writes the accepted ones in order.
func (e *exporter) stream(ctx context.Context, attempts []Source) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	// In addition to the queue, one attempt is being waited for and one is being
	// written.
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
		l := <-result
		if ctx.Err() != nil {
			break
		}
		if l.err != nil {
			e.report.ReadErrors = append(e.report.ReadErrors, l.err.Error())
			continue
		}
		for _, it := range l.accept() {
			if err := e.add(it); err != nil {
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

// add collects an attempt with others that are written together.
func (e *exporter) add(it *Item) error {
	if e.format.name != DPO || len(e.pending) > 0 && e.pending[0].InstanceID != it.InstanceID {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.pending = append(e.pending, it)
	return nil
}

// flush writes the collected attempts.
func (e *exporter) flush() error {
	items, r := e.pending, &e.report
	if e.pending = nil; len(items) == 0 {
		return nil
	}
	w := &writer{opts: e.cfg.Options, format: e.format, losses: losses{}}
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

func (e *exporter) write(w *writer, items []*Item, split string) (rows int, err error) {
	switch {
	case e.format.name == Preds:
		return 0, e.addPrediction(items[0])
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

// countWritten updates the report for attempts that were written.
func (e *exporter) countWritten(w *writer, items []*Item, split string, rows int) {
	for _, reason := range w.unpaired {
		e.report.Dropped[string(reason)]++
	}
	items = slices.DeleteFunc(items, func(it *Item) bool { _, ok := w.unpaired[it]; return ok })
	e.report.Exported += len(items)
	e.report.Rows += rows
	for name, n := range w.losses {
		e.report.Losses[name] += n
	}
	for _, it := range items {
		if e.cfg.OnWritten != nil {
			e.cfg.OnWritten(it, split, rows)
		}
		rows = 0 // rows of several attempts count for the first
	}
}
