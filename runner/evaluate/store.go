package evaluate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// store has the verdicts that count: the records of a run folder and of the
// shared cache that are signed with the user's key, or all with
// Config.TrustVerdicts.
type store struct {
	dir   string       // the run folder
	root  *rootdir.Dir // opened dir; nil if it does not exist
	cache string       // Config.Cache
	key   []byte       // Config.SigningKey
	trust bool         // Config.TrustVerdicts

	mu     sync.Mutex
	byPath map[string]verdicts.Record // records of the folder
	byKey  map[string]string          // key -> path
}

// newStore reads the records of earlier evaluations in dir. It returns a warning
// for each unreadable record, and one for those that do not count; their patches
// are evaluated again.
func newStore(c Config, dir string, root *rootdir.Dir) (s *store, warnings []string, err error) {
	s = &store{
		dir: dir, root: root, cache: c.Cache, key: c.SigningKey, trust: c.TrustVerdicts,
		byPath: map[string]verdicts.Record{}, byKey: map[string]string{},
	}
	if root == nil {
		return s, nil, nil
	}
	set, err := verdicts.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	foreign := 0
	for _, v := range set.Verdicts {
		if r, ok := s.accept(v.Record); ok {
			s.add(v.Path, r)
		} else {
			foreign++
		}
	}
	for _, line := range set.Unreadable {
		warnings = append(warnings, line+"; evaluating the patch again")
	}
	if foreign > 0 {
		warnings = append(warnings, text.Count(foreign, "verdict")+" without the signature of this user: running the tests again; "+
			"take them as they are with mini eval --trust-verdicts")
	}
	return s, warnings, nil
}

// accept reports whether a record counts. One without the user's signature is returned
// without any, and stays so when further runs are added to it.
func (s *store) accept(r verdicts.Record) (verdicts.Record, bool) {
	if r.IsSignedBy(s.key) {
		return r, true
	}
	r.Signature = ""
	return r, s.trust
}

func (s *store) add(path string, r verdicts.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byPath[path] = r.Clone()
	if r.Basis.Key != "" && r.Class.IsFinal() {
		s.byKey[r.Basis.Key] = path
	}
}

// paths holds the paths of the files of one patch.
type paths struct {
	record    string      // file of the record
	extraRuns string      // folder of the extra runs
	official  grade.Files // files of the verdict run, in the official log tree
}

// pathsFor returns the paths of a patch. The error wraps grade.ErrInvalidName.
func pathsFor(dir string, layout grade.Layout, model, id string) (paths, error) {
	official, err := layout.Files(model, id)
	if err != nil {
		return paths{}, err
	}
	folder := filepath.Base(filepath.Dir(official.Dir)) // the model name as a valid folder name
	base := filepath.Join(dir, verdicts.DirName, layout.RunID(), folder, id)
	return paths{record: base + ".json", extraRuns: base, official: official}, nil
}

// extraRun returns the files of extra run n.
func (p paths) extraRun(n int) grade.Files {
	return grade.FilesIn(filepath.Join(p.extraRuns, strconv.Itoa(n)))
}

// write writes a record to the folder. If it is the user's own, write signs it and, with
// toCache, adds it to the cache if other runs may reuse it; cacheErr reports that that failed.
func (s *store) write(p paths, r verdicts.Record, isOwn, toCache bool) (cacheErr, err error) {
	if r.Signature = ""; isOwn {
		r, err = r.WithSignature(s.key)
	}
	if err == nil {
		err = verdicts.Write(s.root, p.record, r)
	}
	if err != nil {
		return nil, err
	}
	s.add(p.record, r)
	if isOwn && toCache && s.cache != "" && r.Basis.Key != "" && r.Class.IsFinal() {
		cacheErr = s.addToCache(p.official, r)
	}
	return cacheErr, nil
}

// remove deletes the record and the files of a patch before a new run. It
// deletes the record first, so that a killed evaluation does not leave a record
// beside the files of another run.
func (s *store) remove(p paths) error {
	all := []string{p.record, p.extraRuns, p.official.Dir}
	for _, path := range all { // check all paths before deleting any
		if err := s.root.CheckWritable(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	s.mu.Lock()
	delete(s.byPath, p.record)
	s.mu.Unlock()
	for _, path := range all {
		if err := s.root.RemoveAll(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return nil
}

// verdict is a verdict that counts, in the folder or the cache.
type verdict struct {
	record verdicts.Record
	files  grade.Files // of the verdict run
	path   string      // of the record; "" if it is in the cache
	from   string      // location of the record, for Record.ReusedFrom
}

// decide returns the verdict on a job: the one with the key of basis at the job's
// own path, or else elsewhere in the folder or in the cache. If there is none, the
// tests must run. If basis has no image, because it is not present, decide assumes
// that the image has not changed since the verdict at the job's path.
func (s *store) decide(j *job, basis verdicts.Basis) (v verdict, ok bool) {
	s.mu.Lock()
	own, ok := s.byPath[j.paths.record]
	s.mu.Unlock()
	if basis.Key == "" {
		basis = basis.WithImage(own.Basis.ImageID, own.Basis.ImageDigest, own.Basis.ImageArch)
	}
	isOwn := own.Instance == j.Instance.ID && own.Model == j.Model
	if ok && isOwn && own.Basis.Key == basis.Key && own.Class.IsFinal() && isComplete(s.root, own, j.paths.official) {
		return verdict{record: own.Clone(), files: j.paths.official, path: j.paths.record}, basis.Key != ""
	}
	v, ok = s.find(basis.Key)
	return v, ok && v.record.Instance == j.Instance.ID && v.files.Dir != j.paths.official.Dir
}

// find returns the verdict with this key in the folder or the cache.
func (s *store) find(key string) (verdict, bool) {
	if key == "" {
		return verdict{}, false
	}
	s.mu.Lock()
	path, ok := s.byKey[key]
	r := s.byPath[path].Clone()
	s.mu.Unlock()
	if ok && r.Basis.Key == key && r.VerdictRun() != nil {
		rel, _ := filepath.Rel(s.dir, path)
		v := verdict{record: r, files: grade.FilesIn(filepath.Join(s.dir, filepath.FromSlash(r.VerdictDir()))), path: path, from: filepath.ToSlash(rel)}
		if isComplete(s.root, r, v.files) {
			return v, true
		}
	}
	return s.findInCache(key)
}

// importFiles copies the files of a verdict to the paths p and removes the
// earlier files there. It returns false and changes nothing if they are not complete,
// because another worker or process was replacing them.
func (s *store) importFiles(v verdict, p paths) (ok bool, err error) {
	parent := filepath.Dir(p.official.Dir)
	if err := s.root.MkdirAll(parent); err != nil {
		return false, fmt.Errorf("create folder of run: %w", err)
	}
	tmp, err := s.root.MkdirTemp(parent, ".taken-")
	if err != nil {
		return false, fmt.Errorf("create folder of run: %w", err)
	}
	defer s.root.RemoveAll(tmp) //nolint:errcheck // already renamed unless importFiles fails
	srcDir := s.root
	if v.path == "" {
		if srcDir, err = rootdir.Open(s.cache); err != nil {
			return false, fmt.Errorf("open cache: %w", err)
		}
		defer srcDir.Close() //nolint:errcheck // only read
	}
	if err := copyFiles(srcDir, v.files, s.root, grade.FilesIn(tmp)); err != nil {
		return false, err
	}
	current, ok := s.find(v.record.Basis.Key)
	if !ok || !current.record.VerdictRun().Start.Equal(v.record.VerdictRun().Start) || !isComplete(s.root, v.record, grade.FilesIn(tmp)) {
		return false, nil
	}
	if err = s.remove(p); err == nil {
		err = s.root.Rename(tmp, p.official.Dir)
	}
	if err != nil {
		return false, fmt.Errorf("reuse %s: %w", v.from, err)
	}
	return true, nil
}

// class returns the class of the verdict with this key, or "" if there is none.
func (s *store) class(key string) verdicts.Class {
	v, _ := s.find(key)
	return v.record.Class
}

// setBaseline sets the classes of the row's own solution and without a patch, if they are known.
func (s *store) setBaseline(r *verdicts.Record, in datasets.Instance) {
	r.Gold = cmp.Or(s.class(r.Basis.CacheKeyWithPatch(verdicts.PatchHash([]byte(in.Patch)))), r.Gold)
	r.Noop = cmp.Or(s.class(r.Basis.CacheKeyWithPatch(verdicts.NoPatch)), r.Noop)
}

// isComplete reports whether all files exist that a run of the record's class writes.
func isComplete(dir *rootdir.Dir, r verdicts.Record, files grade.Files) bool {
	if r.VerdictRun() == nil {
		return false
	}
	required := []string{files.Log, files.Patch}
	switch r.VerdictClass() {
	case verdicts.Resolved, verdicts.Unresolved:
		required = append(required, files.Script, files.TestOutput, files.Report)
	case verdicts.TimedOut, verdicts.Error:
		required = append(required, files.Script, files.TestOutput)
	}
	for _, path := range required {
		if info, err := dir.Lstat(path); err != nil || !info.Mode().IsRegular() { // do not follow links out of the folder
			return false
		}
	}
	return true
}

// copyFiles copies those files of a run that exist to the new folder of dst.
func copyFiles(srcDir *rootdir.Dir, src grade.Files, dstDir *rootdir.Dir, dst grade.Files) error {
	for _, pair := range [][2]string{
		{src.Patch, dst.Patch}, {src.Script, dst.Script}, {src.Log, dst.Log}, {src.TestOutput, dst.TestOutput}, {src.Report, dst.Report},
	} {
		f, err := srcDir.Open(pair[0])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = dstDir.Replace(pair[1], func(w io.Writer) error {
				_, err := io.Copy(w, f)
				return err
			})
			_ = f.Close() // only read
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", pair[0], err)
		}
	}
	return nil
}

// The cache is a folder of verdicts that several runs and processes share. Each
// verdict has a subfolder, named after its key and created atomically.

// cacheDir returns the folder of a verdict in the cache.
func (s *store) cacheDir(key string) string { return filepath.Join(s.cache, key[:2], key) }

func recordPath(dir string) string { return filepath.Join(dir, "verdict.json") }

// findInCache returns the verdict with this key that counts, and the files of its
// run.
func (s *store) findInCache(key string) (verdict, bool) {
	if s.cache == "" {
		return verdict{}, false
	}
	root, err := rootdir.Open(s.cache)
	if err != nil {
		return verdict{}, false
	}
	defer root.Close() //nolint:errcheck // only read
	dir := s.cacheDir(key)
	r, err := verdicts.ReadRecord(root, recordPath(dir))
	if err != nil || r.Basis.Key != key || !r.Class.IsFinal() || !isComplete(root, r, grade.FilesIn(dir)) {
		return verdict{}, false
	}
	r, ok := s.accept(r)
	return verdict{record: r, files: grade.FilesIn(dir), from: dir}, ok
}

// addToCache adds a signed record to the cache, with the files of its verdict run.
// If the cache has the same verdict, addToCache updates only its record.
func (s *store) addToCache(files grade.Files, r verdicts.Record) error {
	if err := os.MkdirAll(s.cache, 0o755); err != nil { //nolint:gosec // others may read verdicts
		return err
	}
	root, err := rootdir.Open(s.cache)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // writes report their own errors
	dir := s.cacheDir(r.Basis.Key)
	if existing, ok := s.findInCache(r.Basis.Key); ok && existing.record.VerdictRun().Start.Equal(r.VerdictRun().Start) {
		return verdicts.Write(root, recordPath(dir), r) // the same verdict, with extra runs
	}
	parent := filepath.Dir(dir)
	if err := root.MkdirAll(parent); err != nil {
		return err
	}
	tmp, err := root.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer root.RemoveAll(tmp) //nolint:errcheck // already renamed unless addToCache fails
	if err := copyFiles(s.root, files, root, grade.FilesIn(tmp)); err != nil {
		return err
	}
	if err := verdicts.Write(root, recordPath(tmp), r); err != nil {
		return err
	}
	old := tmp + "-old"
	defer root.RemoveAll(old) //nolint:errcheck // no reader uses this name
	if err := root.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", dir, err)
	}
	if err = root.Rename(tmp, dir); errors.Is(err, fs.ErrExist) {
		return nil // another process has added the same verdict
	}
	return err
}

func writeFile(dir *rootdir.Dir, path string, data []byte) error {
	if err := dir.WriteFile(path, data); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
