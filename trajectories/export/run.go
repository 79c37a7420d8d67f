package export

import (
	"context"
	"errors"
	"fmt"
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

// Filter says which attempts are exported. It is asked for one after the other,
// in their order.
type Filter interface {
	// Keep gives the reason why an attempt is left out; none keeps it.
	Keep(it *Item) (reason string, err error)
}

// Splitter says which split an attempt belongs to.
type Splitter interface {
	Split(it *Item) string
}

// Config says what is exported, and where to.
type Config struct {
	Options
	// Dir is made, whole or not at all.
	Dir string
	// Replace lets Dir be an earlier export, which is replaced.
	Replace bool
	// Filter and Splitter may be nil: everything is kept, in one split.
	Filter   Filter
	Splitter Splitter
	// Splits are the names that Splitter gives.
	Splits []string
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
	if e.cfg.Options, err = cfg.Options.Checked(); err != nil {
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

// loaded is an attempt that was read, or why it was not.
type loaded struct {
	Attempt
	item *Item
	err  error
}

// written are the rows of a group of attempts.
type written struct {
	group []loaded
	split string
	rows  *writer
	files []File
	why   Refusal // there are none
}

// stream reads attempts, asks the filter, and writes what it keeps. Reading and
// writing go side by side; the filter, and the files, have the order of the
// attempts.
func (e *exporter) stream(ctx context.Context, attempts []Attempt) error {
	g, ctx := errgroup.WithContext(ctx)
	todo := make(chan Attempt)
	g.Go(func() error {
		defer close(todo)
		for _, a := range attempts {
			select {
			case todo <- a:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	read := ordered(ctx, g, e.cfg.Workers, todo, func(a Attempt) (loaded, error) {
		it, err := a.Read()
		return loaded{a, it, err}, nil
	})
	groups := make(chan []loaded)
	g.Go(func() error {
		defer close(groups)
		return e.group(ctx, read, groups)
	})
	for w := range ordered(ctx, g, e.cfg.Workers, groups, e.write) {
		if err := e.take(w); err != nil {
			g.Go(func() error { return err })
			break
		}
	}
	return g.Wait()
}

// group asks the filter, and puts together what makes rows together.
func (e *exporter) group(ctx context.Context, read <-chan loaded, groups chan<- []loaded) error {
	send := func(group []loaded) error {
		if len(group) == 0 {
			return nil
		}
		select {
		case groups <- group:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var group []loaded
	for l := range read {
		if l.err == nil && e.cfg.Filter != nil {
			reason, err := e.cfg.Filter.Keep(l.item)
			if err != nil {
				return err
			}
			if reason != "" {
				l.item, l.err = nil, Refusal(reason)
			}
		}
		if len(group) > 0 && (e.form.name != DPO || group[0].InstanceID != l.InstanceID) {
			if err := send(group); err != nil {
				return err
			}
			group = nil
		}
		group = append(group, l)
	}
	return send(group)
}

// write makes the rows of a group.
func (e *exporter) write(group []loaded) (written, error) {
	w := written{group: group}
	if free, ok := e.free.Get().(*writer); ok {
		w.rows = free
	} else {
		w.rows = newWriter(e.cfg.Options)
	}
	var items []*Item
	for _, l := range group {
		if l.err == nil {
			items = append(items, l.item)
		}
	}
	if len(items) == 0 {
		return w, nil
	}
	if e.cfg.Splitter != nil {
		w.split = e.cfg.Splitter.Split(items[0])
	}
	var err error
	if e.form.write != nil {
		if err = e.form.write(w.rows, items); err == nil && e.schema != nil {
			err = w.rows.shred(e.schema)
		}
	} else {
		w.files, err = e.sink.file(group)
	}
	if why := Refusal(""); errors.As(err, &why) {
		w.why, err = why, nil
	}
	if err != nil {
		err = fmt.Errorf("export %s: %w", group[0].Path, err)
	}
	return w, err
}

// take hands rows on, and enters what became of the attempts.
func (e *exporter) take(w written) error {
	r := &e.report
	kept := 0
	for _, l := range w.group {
		why := Refusal("")
		switch {
		case errors.As(l.err, &why):
			r.Dropped[string(why)]++
		case l.err != nil:
			r.Unread = append(r.Unread, l.err.Error())
		case w.why != "":
			r.Dropped[string(w.why)]++
		default:
			kept++
		}
	}
	if kept > 0 {
		r.Exported += kept
		r.Rows += len(w.rows.ends)
		for name, n := range w.rows.lost {
			r.Losses[name] += n
		}
		if err := e.sink.put(w); err != nil {
			return err
		}
	}
	w.rows.reset()
	e.free.Put(w.rows)
	if e.cfg.Progress != nil {
		e.cfg.Progress(*r)
	}
	return nil
}
