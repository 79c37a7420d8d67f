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

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/verdicts"
)

// store holds the records of a run folder and finds reusable verdicts in that
// folder and in the shared cache.
type store struct {
	dir       string       // the run folder
	root      *rootdir.Dir // opened dir; nil if it does not exist
	cache     cache
	key       []byte // Config.SigningKey
	trustLogs bool   // Config.TrustLogs

	// foreign holds the records of the folder that are not signed with key, or
	// were graded from a log without that signature, by path. It does not
	// change after load.
	foreign map[string]verdicts.Record

	mu     sync.Mutex
	byPath map[string]verdicts.Record // records of the folder
	byKey  map[string]string          // cache key -> path
}

func newStore(c Config, dir string, root *rootdir.Dir) *store {
	return &store{
		dir: dir, root: root, cache: cache(c.Cache), key: c.SigningKey, trustLogs: c.TrustLogs,
		foreign: map[string]verdicts.Record{}, byPath: map[string]verdicts.Record{}, byKey: map[string]string{},
	}
}

// load reads the records of earlier evaluations. It returns a warning for each
// unreadable record; the patch of such a record is evaluated again.
func (s *store) load() (warnings []string, err error) {
	if s.root == nil {
		return nil, nil
	}
	found, err := verdicts.Read(s.dir)
	if err != nil {
		return nil, err
	}
	for _, v := range found.Verdicts {
		switch {
		case !v.IsConsistent():
			found.Unreadable = append(found.Unreadable, fmt.Sprintf("read verdict %s: inconsistent record", v.Path))
		case v.IsSignedBy(s.key) && (!v.ForeignLog || s.trustLogs):
			v.Signature = "" // write signs the record again
			s.add(v.Path, v.Record)
		default:
			s.foreign[v.Path] = v.Record
		}
	}
	for _, text := range found.Unreadable {
		warnings = append(warnings, text+"; evaluating the patch again")
	}
	return warnings, nil
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
func (s *store) pathsFor(layout grade.Layout, model, id string) (paths, error) {
	official, err := layout.Files(model, id)
	if err != nil {
		return paths{}, err
	}
	folder := filepath.Base(filepath.Dir(official.Dir)) // the model name as a valid folder name
	base := filepath.Join(s.dir, verdicts.DirName, layout.RunID(), folder, id)
	return paths{record: base + ".json", extraRuns: base, official: official}, nil
}

// extraRun returns the files of extra run n.
func (p paths) extraRun(n int) grade.Files {
	return grade.FilesIn(filepath.Join(p.extraRuns, strconv.Itoa(n)))
}

// get returns the record at a path, or false if there is none.
func (s *store) get(path string) (verdicts.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.byPath[path]
	return r.Clone(), ok
}

// write signs a record and writes it to the folder.
func (s *store) write(p paths, r verdicts.Record) error {
	signed, err := r.WithSignature(s.key)
	if err == nil {
		err = verdicts.Write(s.root, p.record, signed)
	}
	if err != nil {
		return err
	}
	s.add(p.record, r)
	return nil
}

// addToCache adds a verdict to the cache if other runs may reuse it.
func (s *store) addToCache(p paths, r verdicts.Record) error {
	if s.cache == "" || r.Basis.Key == "" || !r.Class.IsFinal() {
		return nil
	}
	return s.cache.put(r.Basis.Key, s.root, p.official, r)
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

// reusableVerdict is a verdict that the store found in the folder or the cache.
type reusableVerdict struct {
	record verdicts.Record
	files  grade.Files // the files of the verdict run
	path   string      // path of the record; "" if it is in the cache
	from   string      // location of the record, for Record.ReusedFrom
}

// equal reports whether f and g are the same verdict from the same run.
func (f reusableVerdict) equal(g reusableVerdict) bool {
	a, b := f.record.VerdictRun(), g.record.VerdictRun()
	return f.files == g.files && f.record.Class == g.record.Class && a.Class == b.Class && a.Start.Equal(b.Start)
}

// find returns the verdict with this cache key from the folder or the cache.
func (s *store) find(key string) (reusableVerdict, bool) {
	if key == "" {
		return reusableVerdict{}, false
	}
	s.mu.Lock()
	path, ok := s.byKey[key]
	r := s.byPath[path].Clone()
	s.mu.Unlock()
	if ok && len(r.Runs) > 0 && s.root != nil {
		f := reusableVerdict{record: r, files: grade.FilesIn(filepath.Join(s.dir, filepath.FromSlash(r.VerdictDir()))), path: path}
		if r.Basis.Key == key && isComplete(s.root, r, f.files) {
			rel, _ := filepath.Rel(s.dir, path)
			f.from = filepath.ToSlash(rel)
			return f, true
		}
	}
	return s.cache.find(key)
}

// importFiles copies the files of a verdict to the paths p and removes the
// earlier files there. It returns false and changes nothing if another worker or
// process has replaced the verdict during the copy.
func (s *store) importFiles(f reusableVerdict, key string, p paths) (ok bool, err error) {
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
	if f.path == "" {
		if srcDir, err = rootdir.Open(string(s.cache)); err != nil {
			return false, fmt.Errorf("open cache: %w", err)
		}
		defer srcDir.Close() //nolint:errcheck // only read
	}
	if err := copyFiles(srcDir, f.files, s.root, grade.FilesIn(tmp)); err != nil {
		return false, err
	}
	if current, ok := s.find(key); !ok || !current.equal(f) || !isComplete(s.root, f.record, grade.FilesIn(tmp)) {
		return false, nil
	}
	if err = s.remove(p); err == nil {
		err = s.root.Rename(tmp, p.official.Dir)
	}
	if err != nil {
		return false, fmt.Errorf("reuse %s: %w", f.from, err)
	}
	return true, nil
}

// class returns the class of the verdict with this key, or "" if there is none.
func (s *store) class(key string) verdicts.Class {
	f, ok := s.find(key)
	if !ok {
		return ""
	}
	return f.record.Class
}

// isComplete reports whether all files exist that a run of the record's class
// writes, and whether the patch and the script have the recorded hashes.
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
	patchHash := r.Basis.PatchSHA256
	if patchHash == verdicts.NoPatch {
		patchHash = verdicts.PatchHash(nil)
	}
	return hasHash(dir, files.Patch, patchHash) && (len(required) == 2 || hasHash(dir, files.Script, r.Basis.ScriptSHA256))
}

// hasHash reports whether a file has this SHA-256, in hex.
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

// copyFiles removes the folder dst and copies the files of a run to it.
func copyFiles(srcDir *rootdir.Dir, src grade.Files, dstDir *rootdir.Dir, dst grade.Files) error {
	if err := dstDir.RemoveAll(dst.Dir); err != nil {
		return fmt.Errorf("remove %s: %w", dst.Dir, err)
	}
	for _, pair := range [][2]string{
		{src.Patch, dst.Patch},
		{src.Script, dst.Script},
		{src.Log, dst.Log},
		{src.TestOutput, dst.TestOutput},
		{src.Report, dst.Report},
	} {
		if err := copyFile(srcDir, pair[0], dstDir, pair[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy %s: %w", pair[0], err)
		}
	}
	return nil
}

func copyFile(srcDir *rootdir.Dir, src string, dstDir *rootdir.Dir, dst string) error {
	f, err := srcDir.Open(src)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if err := dstDir.MkdirAll(filepath.Dir(dst)); err != nil {
		return err
	}
	return dstDir.Replace(dst, func(w io.Writer) error {
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
