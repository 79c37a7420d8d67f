// Package datasetopen opens a dataset by its name: the demo, a file or folder,
// or a dataset on the Hugging Face hub.
package datasetopen

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/datasets/harbor"
	"github.com/minibench/mini/datasets/hub"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/usage"
)

// Demo is the name of the embedded dataset.
const Demo = "demo"

// Open opens the dataset name: the demo, an existing file or folder, or a
// dataset on the hub. If it has to download the dataset, it calls progress.
func Open(ctx context.Context, name, split string, progress func(hub.Progress)) (datasets.Source, error) {
	if name == Demo {
		return openDemo(split)
	}
	if source, ok, err := openTasks(name); ok {
		return source, err
	}
	if _, err := os.Stat(name); err == nil || !errors.Is(err, os.ErrNotExist) || IsFileName(name) {
		return datasets.Local(name, split)
	}
	if looksLikeFile(name) {
		if source, ok := OpenCached(name, split); ok {
			return source, nil // a dataset of the hub, from the cache
		}
		_, err := datasets.Local(name, split)
		return datasets.Source{}, usage.Errorf("%w (a dataset on the hub is %.80s@main)", err, name)
	}
	ref, err := ParseRef(name, split)
	if err != nil {
		if datasets.ClosestFile(name) != "" {
			return datasets.Local(name, split)
		}
		return datasets.Source{}, err
	}
	h, err := Hub(hub.Config{Progress: progress})
	if err != nil {
		return datasets.Source{}, err
	}
	snapshot, err := h.Open(ctx, ref)
	if err != nil {
		return datasets.Source{}, err
	}
	return snapshot.Source(name), nil
}

// IsTasks reports whether a name is that of tasks in Harbor's form.
func IsTasks(name string) bool {
	return strings.HasPrefix(name, harbor.RegistryPrefix) || harbor.IsTasks(name)
}

// openTasks opens tasks in Harbor's form; ok is false for other names.
func openTasks(name string) (source datasets.Source, ok bool, err error) {
	switch {
	case strings.HasPrefix(name, harbor.RegistryPrefix):
		source, err = harbor.OpenRegistry(name)
	case harbor.IsTasks(name):
		source, err = harbor.Open(name)
	default:
		return source, false, nil
	}
	return source, true, usage.Wrap(err)
}

func openDemo(split string) (datasets.Source, error) {
	if split != "" {
		return datasets.Source{}, usage.Errorf("%s has no split %.40q; leave --split out", Demo, split)
	}
	return datasets.Embedded(Demo, demo.Rows()), nil
}

// ParseRef is like hub.ParseRef, but its error suggests a similar name, if there is
// one, or else has a hint that includes the demo.
func ParseRef(name, split string) (hub.Ref, error) {
	ref, err := hub.ParseRef(name, split)
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		return ref, err
	}
	if closest := configs.ClosestName(name, Names()); closest != "" {
		return ref, usage.Errorf("there is no dataset %.60q; did you mean %s?", name, closest)
	}
	hinted := *e
	hinted.Hint = "a dataset is " + Demo + ", an alias (" + strings.Join(Aliases(), ", ") + "), org/name on the hub, either of these with @revision, or a file"
	return ref, &hinted
}

// fileName matches names that can only be files or folders.
var fileName = lazyregexp.New(`^-$|^[./~\\]|^[A-Za-z]:|\.(jsonl?|parquet)(\.gz)?$|\.gz$|[/\\]$`)

// IsFileName reports whether a name can only be that of a file or folder.
func IsFileName(name string) bool { return fileName.MatchString(name) }

// fileExtension matches names with a file extension. It does not match the
// versions at the end of names on the hub: these have a digit after the dot.
var fileExtension = lazyregexp.New(`\.[A-Za-z]\w{1,9}$`)

// looksLikeFile reports whether a name is more likely a mistyped file in an
// existing folder than a dataset on the hub.
func looksLikeFile(name string) bool {
	folder := filepath.Dir(name)
	if folder == "." || strings.Contains(name, "@") {
		return false
	}
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && (fileExtension.MatchString(name) || datasets.ClosestFile(name) != "")
}

// OpenCached is like Open, but never downloads and never reads pipes; it
// returns false instead, as for all errors.
func OpenCached(name, split string) (datasets.Source, bool) {
	if name == Demo {
		source, err := openDemo(split)
		return source, err == nil
	}
	if source, ok, err := openTasks(name); ok {
		return source, err == nil
	}
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() && !info.IsDir() {
			return datasets.Source{}, false
		}
		source, err := datasets.Local(name, split)
		return source, err == nil
	}
	ref, err := hub.ParseRef(name, split)
	if err != nil {
		return datasets.Source{}, false
	}
	h, err := Hub(hub.Config{Offline: true})
	if err != nil {
		return datasets.Source{}, false
	}
	snapshot, ok := h.Find(ref)
	return snapshot.Source(name), ok
}
