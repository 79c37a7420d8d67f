// Package labels reads and changes the labels and notes that users give to the
// instances of a run. They are in the file labels.json of the run folder. mini writes
// it only for mini label and mini view; batches, resuming and grading leave it alone.
//
//	changed, err := labels.Change("runs/first", "django__django-11099", []string{"flaky"}, nil)
//	err = labels.SetNote("runs/first", "django__django-11099", "fails on slow machines")
//	all, err := labels.Read("runs/first")
//	fmt.Println(all["django__django-11099"])
package labels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
)

// Format identifies the file. Fields may be added; existing fields keep their names
// and meaning.
const Format = "mini-labels-1"

// Limits of labels.
const (
	MaxLength      = 40 // bytes of a label
	MaxPerInstance = 50
	MaxNote        = 4000 // bytes of a note

	maxFile = 16 << 20 // bytes of labels.json
)

// Labels are the labels of a run, by instance id. The labels of an instance are
// sorted.
type Labels map[string][]string

// Notes are the notes of a run, by instance id.
type Notes map[string]string

// file is the content of labels.json.
type file struct {
	Format string `json:"format"`
	Labels Labels `json:"labels"`
	Notes  Notes  `json:"notes,omitempty"`
}

var label = lazyregexp.New(`^[a-z0-9_./][a-z0-9_./-]*$`)

// Check returns an error if a word is not a valid label.
func Check(word string) error {
	if len(word) > MaxLength || !label.MatchString(word) {
		return fmt.Errorf("%.60q is not a label: use at most %d of the characters a-z 0-9 - _ . / and no - at the start", word, MaxLength)
	}
	return nil
}

// Read reads the labels of a run. They are empty if the file is missing. The folder
// is untrusted: the error says what is wrong with the file.
func Read(dir string) (Labels, error) {
	words, _, err := ReadAll(dir)
	return words, err
}

// ReadAll reads the labels and the notes of a run, as Read does.
func ReadAll(dir string) (Labels, Notes, error) {
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read labels: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	f, err := read(root)
	return f.Labels, f.Notes, err
}

func read(root *rootdir.Dir) (file, error) {
	path := filepath.Join(root.Path(), datasets.LabelsFile)
	data, err := root.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return file{Labels: Labels{}, Notes: Notes{}}, nil
	}
	if err != nil {
		return file{}, fmt.Errorf("read labels: %w", err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return file{}, fmt.Errorf("read %s: %w", path, err)
	}
	if f.Format != Format {
		return file{}, fmt.Errorf("read %s: unknown format %.40q (this version of mini reads %s)", path, f.Format, Format)
	}
	for id, words := range f.Labels {
		err := datasets.CheckID(id)
		for _, word := range words {
			err = errors.Join(err, Check(word))
		}
		if err == nil && len(words) > MaxPerInstance {
			err = errTooMany(id)
		}
		if err != nil {
			return file{}, fmt.Errorf("read %s: %w", path, err)
		}
		slices.Sort(words)
		f.Labels[id] = slices.Compact(words)
	}
	for id, note := range f.Notes {
		if err := datasets.CheckID(id); err != nil {
			return file{}, fmt.Errorf("read %s: %w", path, err)
		}
		f.Notes[id] = text.Clip(cleanNote(note), MaxNote)
	}
	if f.Labels == nil {
		f.Labels = Labels{}
	}
	if f.Notes == nil {
		f.Notes = Notes{}
	}
	return f, nil
}

// cleanNote removes what a reader cannot see, and space around the note.
func cleanNote(note string) string {
	const joiner = '\u200d' // of emoji
	note = strings.ReplaceAll(strings.ToValidUTF8(note, "\ufffd"), "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == joiner || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, note))
}

func errTooMany(id string) error {
	return fmt.Errorf("%.100q has more than %d labels", id, MaxPerInstance)
}

// Change adds labels to an instance and removes others, and returns its labels. It
// does not check that the run has the instance. It changes nothing if the instance
// lacks a label in remove.
func Change(dir, id string, add, remove []string) (words []string, err error) {
	for _, word := range slices.Concat(add, remove) {
		if err := Check(word); err != nil {
			return nil, err
		}
	}
	err = change(dir, id, func(f *file) error {
		words = f.Labels[id]
		for _, word := range remove {
			if !slices.Contains(words, word) {
				return fmt.Errorf("%s has no label %q; it has %s", id, word, cmp.Or(strings.Join(words, ", "), "none"))
			}
		}
		words = slices.DeleteFunc(slices.Concat(words, add), func(w string) bool { return slices.Contains(remove, w) })
		slices.Sort(words)
		words = slices.Compact(words)
		if len(words) > MaxPerInstance {
			return errTooMany(id)
		}
		if f.Labels[id] = words; len(words) == 0 {
			delete(f.Labels, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return words, nil
}

// SetNote replaces the note of an instance; "" removes it. It removes characters that a
// reader cannot see.
func SetNote(dir, id, note string) error {
	note = cleanNote(note)
	if len(note) > MaxNote {
		return fmt.Errorf("the note has %d bytes, more than %d", len(note), MaxNote)
	}
	return change(dir, id, func(f *file) error {
		if f.Notes[id] = note; note == "" {
			delete(f.Notes, id)
		}
		return nil
	})
}

// lockTimeout limits the time for which a change waits for other processes that
// change the labels.
const lockTimeout = 10 * time.Second

// change lets f change the content of the file. A batch may work in the folder: change
// locks the folder itself, which only other changes do, and replaces the file atomically.
func change(dir, id string, f func(*file) error) (err error) {
	if err := datasets.CheckID(id); err != nil {
		return err
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return fmt.Errorf("change labels: %w", err)
	}
	defer root.Close() //nolint:errcheck // files are closed by the calls that write them
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); ctx.Err() != nil {
		return fmt.Errorf("%s: another process is changing the labels", dir)
	} else if err != nil {
		return fmt.Errorf("lock labels of %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	content, err := read(root)
	if err != nil {
		return err
	}
	content.Format = Format
	if err := f(&content); err != nil {
		return err
	}
	data, err := text.JSON(content)
	if err == nil {
		err = root.WriteFile(filepath.Join(root.Path(), datasets.LabelsFile), data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", datasets.LabelsFile, err)
	}
	return nil
}
