package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Source is one split of a dataset, in one or more files. The format of a file is
// detected from its first bytes (parquet, gzip, JSON), so cached files may have any name.
type Source struct {
	Name     string   // as the user typed it
	Revision string   // empty if the dataset has no revisions
	Split    string   // empty if the files have no split in their names
	Files    []string // paths, in the order of the rows
	// Names are the slash-separated names of Files within the dataset, for messages and
	// SourceInfo.SHA256. If nil, messages use the paths, and SHA256 their last elements.
	Names []string
	// SHA256 are the checksums of Files, in hex, as far as they are known.
	SHA256 []string

	taskDirs map[string]string // of Tasks, by id
	data     []byte            // of an embedded dataset, which has no files
	spool    *spool            // of a pipe, which can be read only once
}

// Embedded returns a dataset in memory, as JSON lines or a JSON list.
func Embedded(name string, data []byte) Source { return Source{Name: name, data: data} }

// Tasks is like Embedded, for rows of task folders. dirs has the folder of each row, by id.
func Tasks(name string, data []byte, dirs map[string]string) Source {
	return Source{Name: name, data: data, taskDirs: dirs}
}

// IsTasks reports whether the rows are those of task folders.
func (s Source) IsTasks() bool { return s.taskDirs != nil }

// maxFiles limits how many files and directories Local visits below a directory, in case
// the user typed "/" by mistake.
const maxFiles = 20_000

// Local returns the dataset in a file, a pipe, or a directory of shards, which is
// searched recursively. The extensions are .parquet, .jsonl (one row per line) and .json
// (a list of rows), optionally followed by .gz. In a directory, hidden files, metadata and
// files with other extensions are ignored. Stdin, a pipe and an open file descriptor need no
// extension.
//
// If the file names contain splits (see Splits), split selects one; empty means "test",
// or the only one. Local does not read rows. Its errors wrap ErrData.
func Local(name, split string) (Source, error) {
	filePath, stat := name, os.Stat
	if IsStdin(name) {
		filePath, stat = stdinPath, func(string) (fs.FileInfo, error) { return os.Stdin.Stat() }
	}
	info, err := stat(name)
	if err != nil {
		return Source{}, statError(name, err)
	}
	piped := info.Mode()&fs.ModeNamedPipe != 0
	switch {
	case piped:
	case !info.Mode().IsRegular() && IsStdin(name):
		return Source{}, &dataError{"stdin is neither a file nor a pipe; write --subset - < rows.jsonl, or pipe the rows"}
	case info.IsDir():
		return localDir(name, split)
	case !info.Mode().IsRegular():
		return Source{}, &dataError{printable(name) + ": not a file, a directory or a pipe"}
	case info.Size() == 0:
		return Source{}, &dataError{printable(name) + ": the file is empty"}
	}
	// A pipe or an open file descriptor has no meaningful extension.
	if _, ok := stem(name); !ok && !piped && !descriptorPath.MatchString(filePath) {
		return Source{}, &dataError{printable(name) + ": not a dataset; use a .parquet, .jsonl or .json file, or one of these with .gz"}
	}
	fileSplit := splitOf(filepath.Base(name))
	if split != "" && split != fileSplit {
		return Source{}, fmt.Errorf("%s: %w", printable(name), splitError(split, []string{fileSplit}))
	}
	src := Source{Name: name, Split: fileSplit, Files: []string{filePath}}
	if piped {
		src.spool = &spool{path: filePath}
	}
	return src, nil
}

// statError returns the error for a name that cannot be opened.
func statError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return &dataError{printable(name) + ": a broken link"}
		}
		if closest := ClosestFile(name); closest != "" {
			return &dataError{printable(name) + ": no such file; did you mean " + printable(closest) + "?"}
		}
		return &dataError{printable(name) + ": no such file or folder"}
	case errors.Is(err, fs.ErrPermission):
		return &dataError{printable(name) + ": permission denied; run chmod +r, or ask its owner"}
	}
	return &dataError{printable(name) + ": " + cause(err)}
}

// descriptorPath matches paths of open file descriptors.
var descriptorPath = lazyregexp.New(`^/(dev/stdin|dev/fd/[0-9]+|proc/[^/]+/fd/[0-9]+)$`)

func localDir(root, split string) (Source, error) {
	names, err := dataFiles(root)
	if err != nil {
		return Source{}, err
	}
	splits := Splits(names)
	picked, err := PickSplit(splits, split)
	if err == nil {
		err = CheckShards(splits[picked])
	}
	if err != nil {
		return Source{}, fmt.Errorf("%s: %w", printable(root), err)
	}
	src := Source{Name: root, Split: picked, Names: splits[picked]}
	for _, name := range src.Names {
		src.Files = append(src.Files, filepath.Join(root, filepath.FromSlash(name)))
	}
	return src, nil
}

// dataFiles returns the data files below a directory, as relative slash-separated names.
// It follows links to files, since caches of other programs contain such links. It does
// not follow links to directories, since these may form a cycle.
func dataFiles(root string) ([]string, error) {
	seen := 0
	var names []string
	err := filepath.WalkDir(root, func(filePath string, d fs.DirEntry, err error) error {
		if err != nil {
			return &dataError{printable(filePath) + ": " + cause(err)}
		}
		if seen++; seen > maxFiles {
			return &dataError{fmt.Sprintf("%s: more than %d files; check that this is the directory of a dataset", printable(root), maxFiles)}
		}
		switch {
		case filePath == root:
			return nil
		case d.IsDir() && isHidden(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !IsDataFile(d.Name()):
			return nil
		}
		if info, err := os.Stat(filePath); err != nil || !info.Mode().IsRegular() {
			return &dataError{printable(filePath) + ": not a readable file; it may be a broken link"}
		}
		rel, err := filepath.Rel(root, filePath)
		if err != nil {
			return fmt.Errorf("search %s: %w", root, err)
		}
		names = append(names, filepath.ToSlash(rel))
		return nil
	})
	return names, err
}

// count returns the number of files; an embedded dataset counts as one.
func (s Source) count() int { return max(1, len(s.Files)) }

// label returns the name of a file for messages.
func (s Source) label(i int) string {
	switch {
	case len(s.Files) == 0:
		return printable(s.Name)
	case i < len(s.Names):
		return printable(path.Join(filepath.ToSlash(s.Name), s.Names[i]))
	}
	return printable(s.Files[i])
}

// sumName returns the name of a file for SourceInfo.SHA256.
func (s Source) sumName(i int) string {
	if i < len(s.Names) {
		return s.Names[i]
	}
	return path.Base(filepath.ToSlash(s.Files[i]))
}

// printable shortens a name of more than 200 bytes for messages, and quotes a name with
// unprintable characters.
func printable(name string) string {
	const maxLen = 200
	if len(name) > maxLen {
		name = name[:maxLen] + "..."
	}
	if strings.ContainsFunc(name, isUnprintable) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// cause returns the text of an error without the path.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}
