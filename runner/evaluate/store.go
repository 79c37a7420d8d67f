package evaluate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/rootdir"
	"github.com/minibench/mini/runner/verdicts"
)

// store has the records of a folder, and finds the verdicts that can be reused:
// there, and in the cache that several runs share.
type store struct {
	dir   string       // of the run
	root  *rootdir.Dir // the same; nil where it is not there yet
	cache cache
	key   []byte // of the user; see Config.Key
	trust bool   // Config.TrustLogs

	// foreign has the records of the folder that are not reused as they are, by
	// path; it is not changed after read.
	foreign map[string]verdicts.Record

	mu     sync.Mutex
	byPath map[string]verdicts.Record // what is in the folder, by path
	byKey  map[string]string          // key -> path
	rests  map[string]string          // key of a patch without its suspect hunks -> path of the record whose run it is
}

func newStore(c Config, dir string, root *rootdir.Dir) *store {
	return &store{
		dir: dir, root: root, cache: cache(c.Cache), key: c.Key, trust: c.TrustLogs,
		foreign: map[string]verdicts.Record{}, byPath: map[string]verdicts.Record{}, byKey: map[string]string{}, rests: map[string]string{},
	}
}

// read reads what earlier evaluations left. Records that cannot be read are not
// there, and said in warnings: their patches are evaluated again.
func (s *store) read() (warnings []string, err error) {
	if s.root == nil {
		return nil, nil
	}
	found, err := verdicts.Read(s.dir)
	if err != nil {
		return nil, err
	}
	for _, v := range found.Verdicts {
		switch {
		case !v.IsSound():
			found.Unread = append(found.Unread, fmt.Sprintf("read verdict %s: it does not follow from its runs, or leads elsewhere", v.Path))
		case v.IsSealed(s.key) && (!v.ForeignLog || s.trust):
			v.Seal = "" // it is made when the record is written
			s.keep(v.Path, v.Record)
		default:
			s.foreign[v.Path] = v.Record
		}
	}
	for _, text := range found.Unread {
		warnings = append(warnings, text+"; the patch is evaluated again")
	}
	return warnings, nil
}

func (s *store) keep(path string, r verdicts.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byPath[path] = r.Clone()
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
	base := filepath.Join(s.dir, verdicts.Folder, run.ID(), folder, id)
	return paths{record: base + ".json", further: base, official: official}, nil
}

// run is the folder of a further run.
func (p paths) run(n int) grade.Files {
	return grade.FilesIn(filepath.Join(p.further, strconv.Itoa(n)))
}

// own is the record that is at a path, if there is one.
func (s *store) own(path string) (verdicts.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byPath[path]
	return r.Clone(), ok
}

// write puts a record into the folder.
func (s *store) write(p paths, r verdicts.Record) error {
	sealed, err := r.Sealed(s.key)
	if err == nil {
		err = verdicts.Write(s.root, p.record, sealed)
	}
	if err != nil {
		return err
	}
	s.keep(p.record, r)
	return nil
}

// share puts a verdict into the cache, if it may be reused.
func (s *store) share(p paths, r verdicts.Record) error {
	if s.cache == "" || r.Basis.Key == "" || !r.Class.Final() {
		return nil
	}
	return s.cache.put(r.Basis.Key, s.root, p.official, r)
}

// clear makes room for another verdict: whoever is stopped half way must not
// leave a record beside files that are not its own, and nobody is to take them
// over from now on.
func (s *store) clear(p paths) error {
	all := []string{p.record, p.further, p.official.Dir}
	for _, path := range all { // what cannot be cleared is found before any of it is lost
		if err := s.root.CheckChange(path); err != nil {
			return fmt.Errorf("clear %s: %w", path, err)
		}
	}
	s.mu.Lock()
	delete(s.byPath, p.record)
	s.mu.Unlock()
	for _, path := range all {
		if err := s.root.RemoveAll(path); err != nil {
			return fmt.Errorf("clear %s: %w", path, err)
		}
	}
	return nil
}

// found is a verdict that can be reused.
type found struct {
	record verdicts.Record
	files  grade.Files // of the verdict's run
	path   string      // of the record in this folder; "" in the cache
	from   string      // where it was, for people
}

// same says that another look has found the same.
func (f found) same(g found) bool {
	a, b := f.record.VerdictRun(), g.record.VerdictRun()
	return f.files == g.files && f.record.Class == g.record.Class && a.Class == b.Class && a.Start.Equal(b.Start)
}

// known finds the verdict of this key.
func (s *store) known(key string) (found, bool) {
	if key == "" {
		return found{}, false
	}
	s.mu.Lock()
	path, ok := s.byKey[key]
	r := s.byPath[path].Clone()
	if !ok {
		path = s.rests[key]
		r, ok = s.byPath[path].Clone().Rest(key)
	}
	s.mu.Unlock()
	if ok && len(r.Runs) > 0 && s.root != nil {
		f := found{record: r, files: grade.FilesIn(filepath.Join(s.dir, filepath.FromSlash(r.VerdictDir()))), path: path}
		if r.Basis.Key == key && complete(s.root, r, f.files) {
			rel, _ := filepath.Rel(s.dir, path)
			f.from = filepath.ToSlash(rel)
			return f, true
		}
	}
	return s.cache.find(key)
}

// take brings the files of a verdict to another place. It is false, and nothing
// has changed, where the verdict was replaced meanwhile: by a worker, or by
// another mini that uses the cache.
func (s *store) take(f found, key string, p paths) (ok bool, err error) {
	parent := filepath.Dir(p.official.Dir)
	if err := s.root.MkdirAll(parent); err != nil {
		return false, fmt.Errorf("make folder of run: %w", err)
	}
	aside, err := s.root.MkdirTemp(parent, ".taken-")
	if err != nil {
		return false, fmt.Errorf("make folder of run: %w", err)
	}
	defer s.root.RemoveAll(aside) //nolint:errcheck // mostly it was renamed
	from := s.root
	if f.path == "" {
		if from, err = rootdir.Open(string(s.cache)); err != nil {
			return false, fmt.Errorf("open cache: %w", err)
		}
		defer from.Close() //nolint:errcheck // only read
	}
	if err := copyFiles(from, f.files, s.root, grade.FilesIn(aside)); err != nil {
		return false, err
	}
	if now, ok := s.known(key); !ok || !now.same(f) || !complete(s.root, f.record, grade.FilesIn(aside)) {
		return false, nil
	}
	if f.path == p.record { // a further run of its own, which becomes the verdict's
		err = s.root.RemoveAll(p.official.Dir)
	} else {
		err = s.clear(p)
	}
	if err == nil {
		err = s.root.Rename(aside, p.official.Dir)
	}
	if err != nil {
		return false, fmt.Errorf("take over %s: %w", f.from, err)
	}
	return true, nil
}

// class is that of a key, "" where it is not known.
func (s *store) class(key string) verdicts.Class {
	f, ok := s.known(key)
	if !ok {
		return ""
	}
	return f.record.Class
}

// complete says that the files are there which the class of a record promises,
// and that they are those of its patch and script.
func complete(dir *rootdir.Dir, r verdicts.Record, files grade.Files) bool {
	if r.VerdictRun() == nil {
		return false
	}
	want := []string{files.Log, files.Patch}
	switch r.VerdictClass() {
	case verdicts.Resolved, verdicts.Unresolved:
		want = append(want, files.Script, files.TestOutput, files.Report)
	case verdicts.TimedOut, verdicts.Error:
		want = append(want, files.Script, files.TestOutput)
	}
	for _, path := range want {
		if info, err := dir.Lstat(path); err != nil || !info.Mode().IsRegular() { // a link may lead to a file outside the run
			return false
		}
	}
	of := r.Basis.PatchSHA256
	if of == verdicts.NoPatch {
		of = verdicts.PatchHash(nil)
	}
	return hasHash(dir, files.Patch, of) && (len(want) == 2 || hasHash(dir, files.Script, r.Basis.ScriptSHA256))
}

// hasHash says that a file has this SHA-256, in hex.
func hasHash(dir *rootdir.Dir, path, want string) bool {
	f, err := dir.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return false
	}
	return hex.EncodeToString(h.Sum(nil)) == want
}

// copyFiles puts the files of a run in another place, where nothing else is
// left then.
func copyFiles(in *rootdir.Dir, from grade.Files, out *rootdir.Dir, to grade.Files) error {
	if err := out.RemoveAll(to.Dir); err != nil {
		return fmt.Errorf("clear %s: %w", to.Dir, err)
	}
	for _, pair := range [][2]string{
		{from.Patch, to.Patch}, {from.Script, to.Script}, {from.Log, to.Log}, {from.TestOutput, to.TestOutput}, {from.Report, to.Report},
	} {
		if err := copyFile(in, pair[0], out, pair[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy %s: %w", pair[0], err)
		}
	}
	return nil
}

func copyFile(in *rootdir.Dir, from string, out *rootdir.Dir, to string) error {
	f, err := in.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if err := out.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	return out.Replace(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

func writeFile(dir *rootdir.Dir, path string, data []byte) error {
	if err := dir.WriteFile(path, data); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
