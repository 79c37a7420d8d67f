package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/trajectories"
)

// Importer imports attempts from other files into the folder of a run.
type Importer struct {
	version  string // of mini
	store    *resultStore
	imported map[ImportSource]string // source -> name of the attempt imported from it
}

// ImportSource identifies the file and row from which an attempt is imported.
type ImportSource struct {
	SHA256 string // of the file, in hex
	Row    int    // from 1 in a file with several attempts, otherwise 0
}

// Importer returns an Importer that writes to the folder. version is mini's version
// for the headers of imported attempts.
func (f *Folder) Importer(version string) (*Importer, error) {
	store, err := f.openResultStore("")
	if err != nil {
		return nil, err
	}
	i := &Importer{version: version, store: store, imported: map[ImportSource]string{}}
	return i, f.eachAttempt(func(id string, n int) error {
		if record, ok := importOf(f.Journal(id, n)); ok {
			i.imported[ImportSource{record.SHA256, record.Row}] = attemptName(id, n)
		}
		return nil
	})
}

func attemptName(id string, n int) string { return fmt.Sprintf("attempt %d of %s", n, id) }

// importOf returns the import record of a journal, or false if there is none. The
// import record follows the header.
func importOf(journal string) (record trajectories.Import, ok bool) {
	n := 0
	for r, err := range trajectories.Read(journal) {
		if n++; err != nil || n > 2 || ok {
			break
		}
		record, ok = trajectories.DecodeAs[trajectories.Import](r)
	}
	return record, ok
}

// FindAttempt returns the name of the attempt imported from a source; "" if there
// is none.
func (i *Importer) FindAttempt(src ImportSource) string { return i.imported[src] }

// ImportedAttempt is an imported attempt.
type ImportedAttempt struct {
	Attempt int
	// Outcome is nil if the imported file does not contain one.
	Outcome *trajectories.Outcome
}

// Add validates id, writes the journal of an attempt and updates the results. The
// attempt gets the next number and its own repetition, since imported attempts are
// not retries of each other.
func (i *Importer) Add(id string, src ImportSource, records iter.Seq2[trajectories.Record, error]) (ImportedAttempt, error) {
	if err := datasets.CheckID(id); err != nil {
		return ImportedAttempt{}, err
	}
	n, rep := i.store.nextRepetition(id)
	path := i.store.folder.Journal(id, n)
	if err := i.writeJournal(path, i.withHeader(records, id, n, rep)); err != nil {
		i.store.releaseAttempt(id, n)
		return ImportedAttempt{}, errors.Join(err, i.store.folder.removeEmpty(filepath.Dir(path)))
	}
	i.imported[src] = attemptName(id, n)
	out, err := i.store.load(id, n)
	if err == nil && rep == 1 { // even if it has no outcome
		err = i.store.writeTrajectory(id, n)
	}
	return ImportedAttempt{Attempt: n, Outcome: out}, err
}

// AddChildren writes the journals of an attempt's subagents. Each header must have
// the number of its subagent, unique in the attempt.
func (i *Importer) AddChildren(id string, a ImportedAttempt, children []iter.Seq2[trajectories.Record, error]) error {
	dir := filepath.Join(filepath.Dir(i.store.folder.Journal(id, a.Attempt)), trajectories.ChildrenFolderName)
	for _, records := range children {
		n := 0
		for r, err := range records {
			if err != nil {
				return err
			}
			h, err := trajectories.DecodeHeader(r)
			if err != nil {
				return err
			}
			if h.Parent != nil {
				n = h.Parent.Child
			}
			break
		}
		if n < 1 {
			return errors.New("import child: its header has no parent")
		}
		path := filepath.Join(dir, strconv.Itoa(n), trajectories.ChildJournalName)
		if exists(path) {
			return fmt.Errorf("import child: duplicate number %d", n)
		}
		if err := i.writeJournal(path, i.withHeader(records, id, a.Attempt, 0)); err != nil {
			return err
		}
	}
	return nil
}

// writeJournal writes a journal, with its folder, atomically.
func (i *Importer) writeJournal(path string, records iter.Seq2[trajectories.Record, error]) error {
	root := i.store.folder.Root
	if err := root.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	err := root.Replace(path, func(w io.Writer) error { return trajectories.WriteRecords(w, records) })
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// withHeader returns the records with the instance ID and the numbers of the
// attempt set in the header, and with mini's version if the header has none.
func (i *Importer) withHeader(records iter.Seq2[trajectories.Record, error], id string, n, rep int) iter.Seq2[trajectories.Record, error] {
	return func(yield func(trajectories.Record, error) bool) {
		for r, err := range records {
			if err == nil && r.Type == trajectories.TypeHeader {
				var h trajectories.Header
				if h, err = trajectories.DecodeHeader(r); err == nil {
					h.InstanceID, h.Attempt, h.Repetition = id, n, rep
					h.MiniVersion = cmp.Or(h.MiniVersion, i.version)
					r.Data, err = trajectories.EncodeJSON(h)
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// releaseAttempt makes the number of an attempt available again after Add failed.
func (rs *resultStore) releaseAttempt(id string, n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if ir := rs.instances[id]; ir != nil && ir.lastAttempt == n {
		if ir.lastAttempt--; ir.lastAttempt == 0 {
			delete(rs.instances, id)
		}
	}
}

// removeEmpty removes dir and its parents below the run's folder, as long as they
// are empty.
func (f *Folder) removeEmpty(dir string) error {
	for dir != f.Dir {
		entries, err := f.Root.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			return err
		}
		if err := f.Root.Remove(dir); err != nil {
			return fmt.Errorf("remove folder: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// Close writes results.json and preds.json.
func (i *Importer) Close() error { return i.store.flush() }
