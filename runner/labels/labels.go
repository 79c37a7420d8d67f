// Package labels reads and changes the labels that users give to the instances of
// a run. They are in the file labels.json of the run folder. mini writes it only
// for mini label; batches, resuming and grading leave it alone.
//
//	changed, err := labels.Change("runs/first", "django__django-11099", []string{"flaky"}, nil)
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

	maxFile = 16 << 20 // bytes of labels.json
)

// Labels are the labels of a run, by instance id. The labels of an instance are
// sorted.
type Labels map[string][]string

// file is the content of labels.json.
type file struct {
	Format string `json:"format"`
	Labels Labels `json:"labels"`
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
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	return read(root)
}

func read(root *rootdir.Dir) (Labels, error) {
	path := filepath.Join(root.Path(), datasets.LabelsFile)
	data, err := root.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Labels{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if f.Format != Format {
		return nil, fmt.Errorf("read %s: unknown format %.40q (this version of mini reads %s)", path, f.Format, Format)
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
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		slices.Sort(words)
		f.Labels[id] = slices.Compact(words)
	}
	if f.Labels == nil {
		f.Labels = Labels{}
	}
	return f.Labels, nil
}

func errTooMany(id string) error {
	return fmt.Errorf("%.100q has more than %d labels", id, MaxPerInstance)
}

// lockTimeout limits the time for which Change waits for other processes that
// change the labels.
const lockTimeout = 10 * time.Second

// Change adds labels to an instance and removes others, and returns its labels. It
// does not check that the run has the instance. A batch may work in the folder:
// Change locks the folder itself, which only other Changes do, and replaces the file
// atomically. It changes nothing if the instance lacks a label in remove.
func Change(dir, id string, add, remove []string) (words []string, err error) {
	if err := datasets.CheckID(id); err != nil {
		return nil, err
	}
	for _, word := range slices.Concat(add, remove) {
		if err := Check(word); err != nil {
			return nil, err
		}
	}
	root, err := rootdir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("change labels: %w", err)
	}
	defer root.Close() //nolint:errcheck // files are closed by the calls that write them
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); ctx.Err() != nil {
		return nil, fmt.Errorf("%s: another process is changing the labels", dir)
	} else if err != nil {
		return nil, fmt.Errorf("lock labels of %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	all, err := read(root)
	if err != nil {
		return nil, err
	}
	words = all[id]
	for _, word := range remove {
		if !slices.Contains(words, word) {
			return nil, fmt.Errorf("%s has no label %q; it has %s", id, word, cmp.Or(strings.Join(words, ", "), "none"))
		}
	}
	words = slices.DeleteFunc(slices.Concat(words, add), func(w string) bool { return slices.Contains(remove, w) })
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) > MaxPerInstance {
		return nil, errTooMany(id)
	}
	if all[id] = words; len(words) == 0 {
		delete(all, id)
	}
	data, err := text.JSON(file{Format, all})
	if err == nil {
		err = root.WriteFile(filepath.Join(root.Path(), datasets.LabelsFile), data)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", datasets.LabelsFile, err)
	}
	return words, nil
}
