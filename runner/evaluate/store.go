package evaluate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/logfile"
)

// maxRecord bounds what is read of a record, in bytes.
const maxRecord = 16 << 20

// recordsDir is the folder of records, in that of the run.
const recordsDir = "verdicts"

// store has the records of a folder, and finds the verdicts that can be reused:
// there, and in the cache that several runs share.
type store struct {
	dir   string // of the run
	cache string // may be empty

	mu     sync.Mutex
	byPath map[string]Record // what is in the folder, by path
	byKey  map[string]string // key -> path
	rests  map[string]string // key of a patch without its suspect hunks -> path of the record whose run it is
}

// openStore reads what earlier evaluations left. Records that cannot be read
// are not there, and said in warnings: their patches are evaluated again.
func openStore(dir, cache string) (s *store, warnings []string, err error) {
	s = &store{dir: dir, cache: cache, byPath: map[string]Record{}, byKey: map[string]string{}, rests: map[string]string{}}
	root := filepath.Join(dir, recordsDir)
	paths, err := filepath.Glob(filepath.Join(globQuote(root), "*", "*", "*.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("read verdicts: %w", err)
	}
	for _, path := range paths {
		r, err := readRecord(path)
		if err == nil && !r.placed(path) {
			err = fmt.Errorf("read verdict %s: it is that of another place", path)
		}
		if err != nil {
			warnings = append(warnings, err.Error()+"; the patch is evaluated again")
			continue
		}
		s.keep(path, r)
	}
	return s, warnings, nil
}

// placed says that a record, which may be anybody's, belongs where it is, and
// leads nowhere else.
func (r Record) placed(path string) bool {
	model := filepath.Dir(path)
	return r.Instance+".json" == filepath.Base(path) && strings.ReplaceAll(r.Model, "/", "__") == filepath.Base(model) &&
		r.RunID == filepath.Base(filepath.Dir(model)) && r.Basis.Key == r.Basis.key() &&
		!slices.ContainsFunc(r.Runs, func(a Attempt) bool { return a.Dir != "" && !filepath.IsLocal(filepath.FromSlash(a.Dir)) })
}

// globQuote makes a path a pattern that matches itself.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func readRecord(path string) (Record, error) {
	data, err := logfile.Read(path, maxRecord)
	if err != nil {
		return Record{}, fmt.Errorf("read verdict: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read verdict %s: %w", path, err)
	}
	if r.Format != Format {
		return Record{}, fmt.Errorf("read verdict %s: the format is %.40q, and this mini knows %s", path, r.Format, Format)
	}
	return r, nil
}

func (s *store) keep(path string, r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byPath[path] = r.clone()
	if r.Basis.Key != "" && r.Class.Final() {
		s.byKey[r.Basis.Key] = path
	}
	for _, a := range r.Runs {
		if a.Key != "" {
			s.rests[a.Key] = path
		}
	}
}

// paths are where the files of one patch are.
type paths struct {
	record   string      // of the record
	further  string      // the folder of further runs
	official grade.Files // of the verdict's own run
}

// paths are those of a patch in this run. The error wraps grade.ErrName.
func (s *store) paths(run grade.Run, model, id string) (paths, error) {
	official, err := run.Files(model, id)
	if err != nil {
		return paths{}, err
	}
	folder := filepath.Base(filepath.Dir(official.Dir)) // the model's, as a name that is one
	base := filepath.Join(s.dir, recordsDir, run.ID(), folder, id)
	return paths{record: base + ".json", further: base, official: official}, nil
}

// run is the folder of a further run.
func (p paths) run(n int) grade.Files { return filesIn(filepath.Join(p.further, strconv.Itoa(n))) }

// filesIn are the files of a run in a folder of any name.
func filesIn(dir string) grade.Files {
	at := func(name string) string { return filepath.Join(dir, name) }
	return grade.Files{
		Dir: dir, Patch: at("patch.diff"), Script: at("eval.sh"), Log: at("run_instance.log"),
		TestOutput: at("test_output.txt"), Report: at("report.json"),
	}
}

// own is the record that is at a path, if there is one.
func (s *store) own(path string) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byPath[path]
	return r.clone(), ok
}

// write puts a record into the folder, and into the cache with its files when
// it may be reused.
func (s *store) write(p paths, r Record) error {
	if err := writeJSON(p.record, r); err != nil {
		return err
	}
	s.keep(p.record, r)
	if s.cache == "" || r.Basis.Key == "" || !r.Class.Final() {
		return nil
	}
	dir := s.shared(r.Basis.Key)
	if err := copyFiles(p.official, filesIn(dir)); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "verdict.json"), r) // last: without it there is nothing
}

// shared is the folder of a verdict in the cache.
func (s *store) shared(key string) string { return filepath.Join(s.cache, key[:2], key) }

// known finds the verdict of this key, and the files of its run. From is where
// it was, for people.
func (s *store) known(key string) (r Record, files grade.Files, from string, ok bool) {
	if key == "" {
		return Record{}, grade.Files{}, "", false
	}
	s.mu.Lock()
	path, ok := s.byKey[key]
	r = s.byPath[path].clone()
	if !ok {
		path = s.rests[key]
		r, ok = s.byPath[path].clone().rest(key)
	}
	s.mu.Unlock()
	if ok && len(r.Runs) > 0 {
		files = filesIn(filepath.Join(s.dir, filepath.FromSlash(r.verdictDir())))
		if r.Basis.Key == key && complete(r, files) {
			rel, _ := filepath.Rel(s.dir, path)
			return r, files, filepath.ToSlash(rel), true
		}
	}
	if s.cache == "" {
		return Record{}, grade.Files{}, "", false
	}
	dir := s.shared(key)
	r, err := readRecord(filepath.Join(dir, "verdict.json"))
	if err != nil || r.Basis.Key != key || r.Basis.key() != key || !r.Class.Final() || !complete(r, filesIn(dir)) {
		return Record{}, grade.Files{}, "", false
	}
	return r, filesIn(dir), dir, true
}

// class is that of a key, "" where it is not known.
func (s *store) class(key string) Class {
	r, _, _, ok := s.known(key)
	if !ok {
		return ""
	}
	return r.Class
}

// complete says that the files are there which the class of a record promises.
func complete(r Record, files grade.Files) bool {
	if r.verdictRun() == nil {
		return false
	}
	want := []string{files.Log, files.Patch}
	switch r.verdictClass() {
	case Resolved, Unresolved:
		want = append(want, files.Script, files.TestOutput, files.Report)
	case TimedOut, Error:
		want = append(want, files.Script, files.TestOutput)
	}
	for _, path := range want {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// copyFiles puts the files of a run in another place, where nothing else is
// left then.
func copyFiles(from, to grade.Files) error {
	if err := os.RemoveAll(to.Dir); err != nil {
		return fmt.Errorf("clear %s: %w", to.Dir, err)
	}
	for _, pair := range [][2]string{
		{from.Patch, to.Patch}, {from.Script, to.Script}, {from.Log, to.Log}, {from.TestOutput, to.TestOutput}, {from.Report, to.Report},
	} {
		if err := copyFile(pair[0], pair[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy %s: %w", pair[0], err)
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from) //nolint:gosec // a path of mini's own making
	if err != nil {
		return err
	}
	defer in.Close()                                             //nolint:errcheck // only read
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // results are for sharing
		return err
	}
	out, err := renameio.NewPendingFile(to, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(to)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	if _, err := out.ReadFrom(in); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

// writeJSON replaces a file in one piece.
func writeJSON(path string, v any) error {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return writeFile(path, data.Bytes())
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are for sharing
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
