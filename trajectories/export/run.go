package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Attempt is one that is to be exported, before it is read.
type Attempt struct {
	InstanceID string
	Number     int
	// Path is its file, for messages.
	Path string
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
	// Without them everything is kept.
	Sieve  func(*Item) (take func() []*Item)
	Sifted func() error
	// Split is the name of the split that an attempt belongs to, one of Splits;
	// nil puts everything into one. It is called for several at a time.
	Split  func(*Item) string
	Splits []string
	// Wrote is told of each attempt that became rows; rows that are made of
	// several attempts count for the first. It may be nil.
	Wrote func(it *Item, split string, rows int)
	// Workers is how many attempts are read, or written, at a time.
	Workers int
	// Tools are all sets of tools that attempts were offered; a parquet file has
	// to know them before its first row.
	Tools [][]byte
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
	var err error
	if e.cfg.Options, err = cfg.Checked(); err != nil {
		return e.report, err
	}
	e.form, _ = formOf(e.cfg.Format)
	e.cfg.Workers = max(e.cfg.Workers, 1)
	if e.cfg.Parquet {
		tools, err := toolColumns(cfg.Tools, e.cfg.Arguments)
		if err != nil {
			return e.report, err
		}
		e.schema = newSchema(e.form.columns(tools, e.cfg.Options))
	}
	if e.out, err = newFolder(cfg.Dir, cfg.Replace); err != nil {
		return e.report, err
	}
	defer e.out.abandon()
	if e.sink, err = e.newSink(); err != nil {
		return e.report, err
	}
	if err := e.stream(ctx, attempts); err != nil {
		return e.report, errors.Join(err, e.sink.abandon())
	}
	if e.report.Files, err = e.sink.finish(); err != nil {
		return e.report, err
	}
	e.report.Sifted = e.report.Attempts - e.report.Exported - len(e.report.Unread)
	for _, n := range e.report.Dropped {
		e.report.Sifted -= n
	}
	for _, f := range e.report.Files {
		e.report.Bytes += f.Bytes
	}
	if e.report.Exported == 0 {
		return e.report, ErrNothing
	}
	if err := e.describe(); err != nil {
		return e.report, err
	}
	return e.report, e.out.commit()
}

// exporter is one export.
type exporter struct {
	cfg    Config
	form   form
	out    *folder
	sink   sink
	schema *schema // of parquet files; nil for others
	report Report
	free   sync.Pool // of writers
}

// loaded is an attempt that was read, and how the sieve is asked for it; or why
// it was not read.
type loaded struct {
	item *Item
	take func() []*Item
	err  error
}

// batch are attempts that make rows together; or why one was not read.
type batch struct {
	items []*Item
	err   error
}

// written are the rows of a batch.
type written struct {
	batch
	split string
	rows  *writer
	files []File
	why   Refusal // there are none
}

// stream reads attempts, asks the sieve, and writes what it keeps. Reading and
// writing go side by side; the sieve, and the files, have the order of the
// attempts.
func (e *exporter) stream(ctx context.Context, attempts []Attempt) error {
	g, ctx := errgroup.WithContext(ctx)
	todo := make(chan Attempt)
	g.Go(func() error {
		defer close(todo)
		for _, a := range attempts {
			if err := send(ctx, todo, a); err != nil {
				return err
			}
		}
		return nil
	})
	read := ordered(ctx, g, e.cfg.Workers, todo, e.read)
	batches := make(chan batch)
	g.Go(func() error {
		defer close(batches)
		return e.sift(ctx, read, batches)
	})
	for w := range ordered(ctx, g, e.cfg.Workers, batches, e.write) {
		if err := e.take(w); err != nil {
			g.Go(func() error { return err })
			break
		}
	}
	return g.Wait()
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *exporter) read(a Attempt) (loaded, error) {
	it, err := a.Read()
	if err != nil {
		return loaded{err: err}, nil //nolint:nilerr // one attempt that cannot be read ends no export
	}
	it.from = a
	l := loaded{item: it, take: func() []*Item { return []*Item{it} }}
	if e.cfg.Sieve != nil {
		l.take = e.cfg.Sieve(it)
	}
	return l, nil
}

// sift asks the sieve, and puts together what makes rows together.
func (e *exporter) sift(ctx context.Context, read <-chan loaded, batches chan<- batch) error {
	var same []*Item // attempts on one instance, for pairs
	flush := func() error {
		items := same
		same = nil
		if len(items) == 0 {
			return nil
		}
		return send(ctx, batches, batch{items: items})
	}
	for l := range read {
		if l.err != nil {
			if err := send(ctx, batches, batch{err: l.err}); err != nil {
				return err
			}
			continue
		}
		for _, it := range l.take() {
			if e.form.name != DPO || len(same) > 0 && same[0].InstanceID != it.InstanceID {
				if err := flush(); err != nil {
					return err
				}
			}
			same = append(same, it)
		}
	}
	if err := flush(); err != nil || e.cfg.Sifted == nil {
		return err
	}
	return e.cfg.Sifted()
}

// write makes the rows of a batch.
func (e *exporter) write(b batch) (written, error) {
	w := written{batch: b}
	if b.err != nil {
		return w, nil //nolint:nilerr // it goes on its way, to be named in the report
	}
	if free, ok := e.free.Get().(*writer); ok {
		w.rows = free
	} else {
		w.rows = newWriter(e.cfg.Options)
	}
	if e.cfg.Split != nil {
		w.split = e.cfg.Split(b.items[0])
	}
	var err error
	if e.form.write == nil {
		w.files, err = e.sink.file(b.items[0], w.rows.lost)
	} else if err = e.form.write(w.rows, b.items); err == nil && e.schema != nil {
		err = w.rows.shred(e.schema)
	}
	if why := Refusal(""); errors.As(err, &why) {
		w.why, err = why, nil
	}
	if err != nil {
		err = fmt.Errorf("export %s: %w", b.items[0].Journal, err)
	}
	return w, err
}

// take hands rows on, and enters what became of the attempts.
func (e *exporter) take(w written) error {
	r := &e.report
	switch {
	case w.err != nil:
		r.Unread = append(r.Unread, w.err.Error())
		return nil //nolint:nilerr // that is where it is told
	case w.why != "":
		r.Dropped[string(w.why)] += len(w.items)
	default:
		left := w.rows.unpaired
		for _, why := range left {
			r.Dropped[string(why)]++
		}
		w.items = slices.DeleteFunc(w.items, func(it *Item) bool { _, ok := left[it]; return ok })
		r.Exported += len(w.items)
		r.Rows += len(w.rows.ends)
		for name, n := range w.rows.lost {
			r.Losses[name] += n
		}
		if err := e.sink.put(w); err != nil {
			return err
		}
		for i, it := range w.items {
			rows := 0
			if i == 0 {
				rows = len(w.rows.ends)
			}
			if e.cfg.Wrote != nil {
				e.cfg.Wrote(it, w.split, rows)
			}
		}
	}
	w.rows.reset()
	e.free.Put(w.rows)
	if e.cfg.Progress != nil {
		e.cfg.Progress(*r)
	}
	return nil
}
