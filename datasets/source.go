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

// Source is a dataset that can be read again and again: one split of it, in
// one file or several. What a file holds is told from its first bytes (parquet,
// gzip, JSON), so that files of a cache may have any name.
type Source struct {
	Name     string   // what the user called it
	Revision string   // of a dataset that has revisions, else empty
	Split    string   // empty where the files tell no splits apart
	Files    []string // paths, in the order of their rows
	// Names are what the files are called within the dataset, slash-separated,
	// one for each of Files. They are for messages and for Edition.SHA256; nil
	// means the paths themselves, and their last parts.
	Names []string
	// SHA256 are the checksums, in hex, that the files had when they were
	// fetched, one for each of Files; nil or "" where nobody knows. Where a
	// file is not what it was, Load says so, and names Mend, the command that
	// brings it anew.
	SHA256 []string
	Mend   string

	data  []byte // of an embedded dataset, which has no files
	spool *spool // of a pipe, which gives its bytes only once
}

// Embedded is a dataset within the program, of JSON lines or a JSON list.
func Embedded(name string, data []byte) Source { return Source{Name: name, data: data} }

// maxFiles bounds the files of a folder that are looked at: a mistyped "/" is
// to end with a message, and not with the last file of the machine.
const maxFiles = 20_000

// Local is the dataset in a file, or in a folder of shards, which is searched
// with the folders in it. Endings are .parquet, .jsonl (a row a line) and .json
// (a list of rows), also with .gz; a pipe may hold any of them. Hidden files
// are ignored, and so is what has another ending. Stdin is what comes from
// there, a pipe or a file without any ending.
//
// Where the file names tell splits apart (see Splits), split says which one is
// meant; empty means "test", or the only one. The rows are not read yet, but
// for what can be known now an error is returned that wraps ErrData.
func Local(name, split string) (Source, error) {
	at, stat := name, os.Stat
	if IsStdin(name) {
		at, stat = stdinPath, func(string) (fs.FileInfo, error) { return os.Stdin.Stat() }
	}
	info, err := stat(name)
	if err != nil {
		return Source{}, notThere(name, err)
	}
	piped := info.Mode()&fs.ModeNamedPipe != 0
	switch {
	case piped:
	case !info.Mode().IsRegular() && IsStdin(name):
		return Source{}, &badData{"nothing that could be rows comes from stdin; write --subset - < rows.jsonl, or pipe them in"}
	case info.IsDir():
		return folder(name, split)
	case !info.Mode().IsRegular():
		return Source{}, &badData{printable(name) + ": neither a file nor a folder nor a pipe"}
	case info.Size() == 0:
		return Source{}, &badData{printable(name) + ": the file is empty"}
	}
	// The name of a pipe, and of what is open already, says nothing of its form.
	if _, ok := stem(name); !ok && !piped && !descriptor.MatchString(at) {
		return Source{}, &badData{printable(name) + ": not a dataset; .parquet, .jsonl and .json files are read, also with .gz"}
	}
	its := splitOf(filepath.Base(name))
	if split != "" && split != its {
		return Source{}, fmt.Errorf("%s: %w", printable(name), noSplit(split, []string{its}))
	}
	src := Source{Name: name, Split: its, Files: []string{at}}
	if piped {
		src.spool = &spool{path: at}
	}
	return src, nil
}

// notThere is for a name that leads to nothing that can be looked at.
func notThere(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(name); err == nil {
			return &badData{printable(name) + ": a link to something that is gone"}
		}
		if near := NearFile(name); near != "" {
			return &badData{printable(name) + ": no such file; did you mean " + printable(near) + "?"}
		}
		return &badData{printable(name) + ": no such file or folder"}
	case errors.Is(err, fs.ErrPermission):
		return &badData{printable(name) + ": this user may not read it; chmod +r, or ask its owner"}
	}
	return &badData{printable(name) + ": " + cause(err)}
}

// descriptor matches what Unix calls files that are open already.
var descriptor = lazyregexp.New(`^/(dev/stdin|dev/fd/[0-9]+|proc/[^/]+/fd/[0-9]+)$`)

func folder(root, split string) (Source, error) {
	names, err := dataFiles(root)
	if err != nil {
		return Source{}, err
	}
	splits := Splits(names)
	picked, err := PickSplit(splits, split)
	if err == nil {
		err = missingShard(splits[picked])
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

// dataFiles walks a folder and returns the names of its data files, relative
// and slash-separated. A link to a file is followed, since the caches of other
// programs are made of them; a link to a folder could lead in a circle.
func dataFiles(root string) ([]string, error) {
	seen := 0
	var names []string
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return &badData{printable(at) + ": " + cause(err)}
		}
		if seen++; seen > maxFiles {
			return &badData{fmt.Sprintf("%s: more than %d files; is this the folder of a dataset?", printable(root), maxFiles)}
		}
		switch {
		case at == root:
			return nil
		case d.IsDir() && hidden(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !IsData(d.Name()):
			return nil
		}
		if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() {
			return &badData{printable(at) + ": not a file that can be read; is it a link to something that is gone?"}
		}
		rel, err := filepath.Rel(root, at)
		if err != nil {
			return fmt.Errorf("search %s: %w", root, err)
		}
		names = append(names, filepath.ToSlash(rel))
		return nil
	})
	return names, err
}

// count is how many files the source has; embedded rows count as one.
func (s Source) count() int { return max(1, len(s.Files)) }

// label is what a file of the source is called in messages.
func (s Source) label(i int) string {
	switch {
	case len(s.Files) == 0:
		return printable(s.Name)
	case i < len(s.Names):
		return printable(path.Join(filepath.ToSlash(s.Name), s.Names[i]))
	}
	return printable(s.Files[i])
}

// sumName is the name of a file in the text that an edition of several files
// is known by.
func (s Source) sumName(i int) string {
	if i < len(s.Names) {
		return s.Names[i]
	}
	return path.Base(filepath.ToSlash(s.Files[i]))
}

// printable is a name of foreign origin as messages show it.
func printable(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most] + "..."
	}
	if strings.ContainsFunc(name, unprintable) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// cause is the reason of a failed operation without the path, which the
// message has already.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}
