// Package export turns attempts into what trains models: the conversation forms
// of the usual trainers, and the files of other tools.
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

// Item is one attempt on its way out.
type Item struct {
	*trajectories.Transcript
	// Journal is the file, SHA256 that of its bytes.
	Journal, SHA256 string
	InstanceID      string
	Attempt         int
	// Sample is which of several attempts that were asked for it is, from 1 on.
	Sample int
	// Repo is "owner/name" as the dataset has it, or what the instance's id says;
	// empty where neither does.
	Repo string
	// Dataset is the set that the run was on, as its manifest names it.
	Dataset string
	// Verdict is the class of the evaluation of this attempt's submission
	// ("resolved", "unresolved", ...); empty before there is one.
	Verdict string
	// Flags are what the evaluation found suspect in the submission.
	Flags []string
	// Tokens is how long the conversation is, by the tokenizer that was asked
	// for, else as the provider counted the last prompt and reply; 0 is unknown.
	Tokens int64

	from Attempt // as Run was given it
}

// Attempt is one that is to be exported, before it is read.
type Attempt struct {
	InstanceID string
	Number     int
	// Several says that more than one attempt on the instance is exported from
	// the same run; Folder is the name of the run where there is more than one
	// run. Both make names of files.
	Several bool
	Folder  string
	// Read returns the attempt. Several are read at a time.
	Read func() (*Item, error)
}

// Config says what is exported, and where to.
type Config struct {
	Options
	// Dir is made, whole or not at all.
	Dir string
	// Replace lets Dir be an earlier export, which is replaced.
	Replace bool
	// Sieve judges an attempt, and may change it; it is called for several at a
	// time. What it returns is called in the order of the attempts, and gives those
	// that are kept by then: this one or not, and maybe others that waited. Sifted
	// is called after the last one; its error keeps the export from being made.
	// Without them everything is kept. All other functions are called by the
	// goroutine of Run.
	Sieve  func(*Item) (take func() []*Item)
	Sifted func() error
	// Split is the name of the split that an attempt belongs to, one of Splits;
	// nil puts everything into one.
	Split  func(*Item) string
	Splits []string
	// Wrote is told of each attempt that became rows; rows that are made of
	// several attempts count for the first. It may be nil.
	Wrote func(it *Item, split string, rows int)
	// Workers is how many attempts are read, or written, at a time.
	Workers int
	// Tools are all sets of tools that attempts were offered; a parquet file has
	// to know them before its first row.
	Tools []json.RawMessage
	// Manifest writes what the caller knows beside the report into the folder,
	// when all rows are there.
	Manifest func(dir string, r Report) error
	// Progress is called after each attempt; it may be nil.
	Progress func(Report)
}

// OneSplit is what everything is in where nobody asked for splits: trainers
// take a file of this name for what is to be learned.
const OneSplit = "train"

// Report says what was written and what was not.
type Report struct {
	Attempts int    `json:"attempts"` // that were to be exported
	Exported int    `json:"exported"` // attempts
	Sifted   int    `json:"sifted"`   // attempts that the sieve did not keep
	Rows     int    `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Files    []File `json:"files"`
	// Dropped counts attempts by the reason why they were left out.
	Dropped map[string]int `json:"dropped,omitempty"`
	// Losses count what the format has no place for, and what else is to be known.
	Losses map[string]int `json:"losses,omitempty"`
	// Unread says which attempts could not be read, a sentence each.
	Unread []string `json:"unread,omitempty"`
}

// File is one file of rows, or of a folder of attempts.
type File struct {
	Name  string `json:"name"`
	Split string `json:"split,omitempty"`
	Rows  int    `json:"rows,omitempty"`
	Bytes int64  `json:"bytes"`
}

// ErrNothing says that nothing was exported, and no folder was made.
var ErrNothing = errors.New("nothing to export")

// Run exports attempts in their order; those on one instance follow each other.
// What cannot be read or written in the format is left out, and named in the
// report.
func Run(ctx context.Context, cfg Config, attempts []Attempt) (Report, error) {
	e := &exporter{cfg: cfg, report: Report{Attempts: len(attempts), Dropped: map[string]int{}, Losses: losses{}}}
	err := e.run(ctx, attempts)
	return e.report, err
}

// exporter is one export.
type exporter struct {
	cfg    Config
	format format
	out    *folder
	shards *shards                            // of formats with rows
	preds  map[string]trajectories.Prediction // of preds.json
	same   []*Item                            // attempts on one instance, which make rows together
	report Report
}

func (e *exporter) run(ctx context.Context, attempts []Attempt) (err error) {
	if e.cfg.Options, err = e.cfg.Checked(); err != nil {
		return err
	}
	e.format, _ = formatOf(e.cfg.Format)
	e.shards = &shards{o: e.cfg.Options, enc: newEncoder(), open: map[string]*shard{}, count: map[string]int{}, splits: e.cfg.Splits}
	if len(e.shards.splits) == 0 {
		e.shards.splits = []string{OneSplit}
	}
	if e.cfg.Parquet {
		tools, args, err := toolColumns(e.cfg.Tools, e.cfg.Arguments)
		if err != nil {
			return err
		}
		e.shards.schema = newSchema(e.format.columns(tools, args))
	}
	e.preds = map[string]trajectories.Prediction{}
	if e.out, err = newFolder(e.cfg.Dir, e.cfg.Replace); err != nil {
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
	r.Sifted = r.Attempts - r.Exported - len(r.Unread)
	for _, n := range r.Dropped {
		r.Sifted -= n
	}
	for _, f := range r.Files {
		r.Bytes += f.Bytes
	}
	if r.Exported == 0 {
		return ErrNothing
	}
	if e.format.name == ShareGPT {
		if err := writeDatasetInfo(e.out.tmp, r.Files); err != nil {
			return err
		}
	}
	if e.cfg.Manifest != nil {
		if err := e.cfg.Manifest(e.out.tmp, *r); err != nil {
			return err
		}
	}
	return e.out.commit()
}

// loaded is an attempt that was read, and how the sieve is asked for it; or why
// it was not read.
type loaded struct {
	take func() []*Item
	err  error
}

func (e *exporter) read(a Attempt) loaded {
	it, err := a.Read()
	if err != nil {
		return loaded{err: err}
	}
	it.from = a
	if e.cfg.Sieve != nil {
		return loaded{take: e.cfg.Sieve(it)}
	}
	return loaded{take: func() []*Item { return []*Item{it} }}
}

// stream reads attempts, several at a time, and in their order asks the sieve and
// writes what it keeps.
func (e *exporter) stream(ctx context.Context, attempts []Attempt) error {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	// Of the attempts that are read, one is waited for and one is in hand.
	queue := make(chan chan loaded, max(e.cfg.Workers-1, 0))
	readers.Go(func() {
		defer close(queue)
		for _, a := range attempts {
			answer := make(chan loaded, 1)
			select {
			case queue <- answer:
			case <-ctx.Done():
				return
			}
			readers.Go(func() { answer <- e.read(a) })
		}
	})
	for answer := range queue {
		l := <-answer
		if ctx.Err() != nil {
			break
		}
		if l.err != nil {
			e.report.Unread = append(e.report.Unread, l.err.Error())
			continue
		}
		for _, it := range l.take() {
			if err := e.add(it); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := e.flush(); err != nil || e.cfg.Sifted == nil {
		return err
	}
	return e.cfg.Sifted()
}

// add puts an attempt to those that make rows together with it.
func (e *exporter) add(it *Item) error {
	if e.format.name != DPO || len(e.same) > 0 && e.same[0].InstanceID != it.InstanceID {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.same = append(e.same, it)
	return nil
}

// flush writes the rows of the attempts that make rows together, and enters what
// became of them.
func (e *exporter) flush() error {
	items, r := e.same, &e.report
	if e.same = nil; len(items) == 0 {
		return nil
	}
	w := &writer{o: e.cfg.Options, format: e.format, lost: losses{}}
	split := ""
	if e.cfg.Split != nil {
		split = e.cfg.Split(items[0])
	}
	rows, err := e.write(w, items, split)
	why, refused := errors.AsType[Refusal](err)
	switch {
	case refused:
		r.Dropped[string(why)] += len(items)
	case errors.Is(err, ErrOptions):
		return err
	case err != nil:
		return fmt.Errorf("export %s: %w", items[0].Journal, err)
	default:
		e.enter(w, items, split, rows)
	}
	if e.cfg.Progress != nil {
		e.cfg.Progress(*r)
	}
	return nil
}

func (e *exporter) write(w *writer, items []*Item, split string) (rows int, err error) {
	switch {
	case e.format.name == Preds:
		return 0, e.predict(items[0])
	case e.format.rows == nil:
		f, err := e.writeFile(items[0], w.lost)
		if err == nil {
			e.report.Files = append(e.report.Files, f)
		}
		return 0, err
	}
	all, err := e.format.rows(w, items)
	if err != nil {
		return 0, err
	}
	return len(all), e.shards.put(split, all)
}

// enter counts what was written of some attempts.
func (e *exporter) enter(w *writer, items []*Item, split string, rows int) {
	for _, why := range w.unpaired {
		e.report.Dropped[string(why)]++
	}
	items = slices.DeleteFunc(items, func(it *Item) bool { _, ok := w.unpaired[it]; return ok })
	e.report.Exported += len(items)
	e.report.Rows += rows
	for name, n := range w.lost {
		e.report.Losses[name] += n
	}
	for _, it := range items {
		if e.cfg.Wrote != nil {
			e.cfg.Wrote(it, split, rows)
		}
		rows = 0 // those of several attempts count for the first
	}
}
