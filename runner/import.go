package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// Importer takes attempts that were made elsewhere into the folder of a run,
// each beside those that its instance has.
type Importer struct {
	version string // of this mini
	book    *book
	have    map[Origin]string // what is here already -> the attempt it became
}

// Origin is the file, and the place in it, that an attempt was made from.
type Origin struct {
	SHA256 string // of the file, in hex
	Row    int    // in a file of several, from 1 on
}

// Importer reads what the folder has. version is that of this mini, which stands
// in the headers of what it takes in.
func (f *Folder) Importer(version string) (*Importer, error) {
	book, err := f.openBook("")
	if err != nil {
		return nil, err
	}
	i := &Importer{version: version, book: book, have: map[Origin]string{}}
	ids, err := f.ids()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		numbers, err := f.attempts(id)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if from, ok := importOf(f.Journal(id, n)); ok {
				i.have[Origin{from.SHA256, from.Row}] = attemptName(id, n)
			}
		}
	}
	return i, nil
}

func attemptName(id string, n int) string { return fmt.Sprintf("attempt %d of %s", n, id) }

// importOf is the import record of a journal; it is the second one.
func importOf(journal string) (trajectories.Import, bool) {
	var from trajectories.Import
	n := 0
	for r, err := range trajectories.Read(journal) {
		if n++; err != nil || n > 2 {
			break
		}
		if r.Type == trajectories.TypeImport {
			return from, json.Unmarshal(r.Data, &from) == nil
		}
	}
	return from, false
}

// Has says which attempt was made of a file before, in words; "" where none was.
func (i *Importer) Has(o Origin) string { return i.have[o] }

// Imported is an attempt as it was taken in.
type Imported struct {
	Attempt int
	// Outcome is nil where the file does not say how the attempt ended.
	Outcome *trajectories.Outcome
}

// Add writes the journal of an attempt, and what is derived from it. The header
// gets the attempt's number, and a sample of its own: nobody ran them again
// because one failed. The id comes from a file and is checked.
func (i *Importer) Add(id string, o Origin, records iter.Seq2[trajectories.Record, error]) (Imported, error) {
	if err := datasets.CheckID(id); err != nil {
		return Imported{}, err
	}
	n, k := i.book.nextSample(id)
	path, err := i.book.folder.newAttempt(id, n)
	if err != nil {
		return Imported{}, err
	}
	if err := i.writeWhole(path, i.numbered(records, id, n, k)); err != nil {
		i.book.giveBack(id, n)
		return Imported{}, errors.Join(err, i.book.folder.dropEmpty(filepath.Dir(path)))
	}
	i.have[o] = attemptName(id, n)
	return i.enter(id, n, k)
}

// AddChildren writes the journals of an attempt's children beside its own. They
// keep their numbers; a second one of the same number, and one that has none, is an
// error.
func (i *Importer) AddChildren(id string, in Imported, children []iter.Seq2[trajectories.Record, error]) error {
	dir := filepath.Join(filepath.Dir(i.book.folder.Journal(id, in.Attempt)), trajectories.ChildrenFolder)
	for _, records := range children {
		n := 0
		for r, err := range records {
			if err != nil {
				return err
			}
			h, err := trajectories.HeaderOf(r)
			if err != nil {
				return err
			}
			if h.Parent != nil {
				n = h.Parent.Child
			}
			break
		}
		if n < 1 {
			return errors.New("import child: its header does not say whose it is")
		}
		path := filepath.Join(dir, strconv.Itoa(n), trajectories.ChildJournal)
		if exists(path) {
			return fmt.Errorf("import child: there are two of number %d", n)
		}
		if err := i.book.folder.root.MkdirAll(filepath.Dir(path)); err != nil {
			return fmt.Errorf("import child: %w", err)
		}
		if err := i.writeWhole(path, i.numbered(records, id, in.Attempt, 0)); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole makes a journal that is there whole or not at all.
func (i *Importer) writeWhole(path string, records iter.Seq2[trajectories.Record, error]) error {
	err := i.book.folder.root.Replace(path, func(w io.Writer) error { return trajectories.WriteRecords(w, records) })
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// numbered are the records with a header for their place in this run.
func (i *Importer) numbered(records iter.Seq2[trajectories.Record, error], id string, n, k int) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			if err == nil && r.Type == trajectories.TypeHeader {
				var h trajectories.Header
				if h, err = trajectories.HeaderOf(r); err == nil {
					h.InstanceID, h.Attempt, h.Sample = id, n, k
					h.MiniVersion = cmp.Or(h.MiniVersion, i.version)
					r.Data, err = trajectories.Encode(h)
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// giveBack frees the number of an attempt that was not made.
func (b *book) giveBack(id string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[id]; e != nil && e.last == n {
		if e.last--; e.last == 0 {
			delete(b.entries, id)
		}
	}
}

// dropEmpty removes the folder of an attempt that was not made, and those above
// it that hold nothing, up to the run's.
func (f *Folder) dropEmpty(dir string) error {
	for dir != f.dir {
		entries, err := f.root.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			return err
		}
		if err := f.root.Remove(dir); err != nil {
			return fmt.Errorf("remove folder: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// enter takes the attempt into the book. The first sample is the instance's
// trajectory, also where it does not say how it ended.
func (i *Importer) enter(id string, n, k int) (Imported, error) {
	in := Imported{Attempt: n}
	if err := i.book.recall(id, n); err != nil {
		return in, err
	}
	if k == 1 {
		if err := i.book.writeTraj(id, n); err != nil {
			return in, err
		}
	}
	out, ended, err := trajectories.Last(i.book.folder.Journal(id, n))
	if err != nil {
		return in, fmt.Errorf("read %s: %w", attemptName(id, n), err)
	}
	if ended {
		in.Outcome = &out
	}
	return in, nil
}

// Close writes results.json and preds.json.
func (i *Importer) Close() error { return i.book.flush() }
