package skills

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fileName is what the text of a skill is in.
const fileName = "SKILL.md"

// Source is where skills are looked for: a folder with a folder for each, or the
// folder of one.
type Source struct {
	// Name is how messages call it, as a path.
	Name string
	// Files are what is in it; nil for a Source of Folder. Symbolic links in it are
	// refused.
	Files fs.FS
	// Optional says that it is no problem if there is no such folder.
	Optional bool

	dir string
}

// Folder is a folder on this machine. Symbolic links in the folder of a skill are
// followed to files in that folder; others are refused.
func Folder(path string) Source { return Source{Name: path, dir: path} }

//go:embed all:shipped
var shipped embed.FS

// ShippedName is the Source of the skills that come with mini.
const ShippedName = "shipped"

// Shipped are the skills that come with mini.
func Shipped() Source {
	files, err := fs.Sub(shipped, "shipped")
	if err != nil {
		panic(err) // the name is no path
	}
	return Source{Name: ShippedName, Files: files}
}

// Load finds the skills of all sources. Of two with one name that are in order
// that of the earlier source counts, and a warning says so. What cannot be read
// is a Problem.
func Load(from ...Source) *Set {
	l := &loader{set: &Set{}, from: map[string]string{}}
	for _, s := range from {
		l.source(s)
	}
	slices.SortFunc(l.set.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return l.set
}

type loader struct {
	set  *Set
	from map[string]string // which source a skill is of
	at   string            // the folder that is looked at
}

func (l *loader) problem(p Problem) {
	p.folder = l.at
	l.set.Problems = append(l.set.Problems, p)
}

func (l *loader) source(s Source) {
	l.at = s.Name
	files, done, err := s.open()
	if errors.Is(err, fs.ErrNotExist) && s.Optional {
		return
	}
	if err != nil {
		l.problem(Problem{File: s.Name, Text: "it cannot be read: " + reason(err)})
		return
	}
	defer done.Close() //nolint:errcheck // nothing was written
	if _, err := fs.Lstat(files, fileName); err == nil {
		l.skill(s, ".", func() (fs.FS, io.Closer, error) { return s.open() })
		return
	}
	list, err := readDir(files, ".", MaxListed)
	if err != nil {
		l.problem(Problem{File: s.Name, Text: reason(err)})
		return
	}
	count := 0
	for _, d := range list {
		name := d.Name()
		if strings.HasPrefix(name, ".") || !d.IsDir() && d.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if count++; count > MaxSkills {
			l.problem(Problem{File: s.Name, Text: fmt.Sprintf("more than %d folders; the others are not looked at", MaxSkills)})
			return
		}
		l.skill(s, name, func() (fs.FS, io.Closer, error) { return s.sub(name) })
	}
}

// open opens the source itself.
func (s Source) open() (fs.FS, io.Closer, error) {
	if s.Files != nil {
		return plain{s.Files}, io.NopCloser(nil), nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), root, nil
}

// base is what the folder is called where it is a skill itself.
func (s Source) base() string {
	if s.Files != nil {
		return path.Base(s.Name)
	}
	whole, err := filepath.Abs(s.dir)
	if err != nil {
		return filepath.Base(s.dir)
	}
	return filepath.Base(whole)
}

// sub opens a folder in it, out of which nothing leads then.
func (s Source) sub(name string) (fs.FS, io.Closer, error) {
	if s.Files != nil {
		info, err := fs.Lstat(s.Files, name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, errLink
		}
		files, err := fs.Sub(s.Files, name)
		return plain{files}, io.NopCloser(nil), err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	in, err := root.OpenRoot(name)
	if err != nil {
		return nil, nil, err
	}
	return in.FS(), in, nil
}

// plain is a file system of somebody else's, of whose links nobody knows where
// they lead.
type plain struct{ fs.FS }

// Lstat implements fs.ReadLinkFS, as far as the file system does.
func (p plain) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(p.FS, name) }

// ReadLink implements fs.ReadLinkFS.
func (p plain) ReadLink(name string) (string, error) { return fs.ReadLink(p.FS, name) }

var errLink = errors.New("it is a symbolic link")

// skill reads the folder of one.
func (l *loader) skill(s Source, name string, open opener) {
	folder := name
	at := func(file string) string { return path.Join(s.Name, name, file) }
	if name == "." { // the source is the skill
		folder = s.base()
	}
	l.at = at("")
	defer func() { l.at = s.Name }()
	whole := func(text string) { l.problem(Problem{Skill: folder, File: at(""), Text: text}) }
	files, done, err := open()
	if err != nil {
		if d, e := os.Stat(path.Join(s.dir, name)); e == nil && !d.IsDir() && s.Files == nil {
			return // a link to a file: as a file there
		}
		whole(linked(err))
		return
	}
	defer done.Close() //nolint:errcheck // nothing was written
	data, err := readFile(files, fileName, MaxText+1)
	if errors.Is(err, fs.ErrNotExist) {
		l.problem(Problem{Skill: folder, File: at(""), Text: "there is no " + fileName + " in it", Warning: true})
		return
	}
	if err != nil {
		l.problem(Problem{Skill: folder, File: at(fileName), Text: linked(err)})
		return
	}
	one, problems := Parse(folder, data)
	for _, p := range problems {
		p.File = at(fileName)
		l.problem(p)
	}
	w := &walker{files: files}
	w.walk(".", 0)
	for _, p := range w.problems {
		p.Skill, p.File = folder, at(p.File)
		l.problem(p)
	}
	bad := func(p Problem) bool { return !p.Warning }
	if slices.ContainsFunc(problems, bad) || slices.ContainsFunc(w.problems, bad) {
		return
	}
	if first, twice := l.from[one.Name]; twice {
		l.problem(Problem{Skill: folder, File: at(fileName), Text: "the skill of this name in " + first + " counts, not this one", Warning: true})
		return
	}
	l.from[one.Name] = s.Name
	sum := sha256.Sum256(data)
	one.Source, one.Path, one.Files, one.folder, one.sum = s.Name, at(""), w.found, open, sum[:]
	l.set.Skills = append(l.set.Skills, one)
}

// linked is what is wrong with a name that could not be opened.
func linked(err error) string {
	if errors.Is(err, errLink) || strings.Contains(err.Error(), "escapes") {
		return "it is a symbolic link that leads, or might lead, out of its folder"
	}
	return "it cannot be read: " + reason(err)
}

// reason is an error of the file system without the path, which is said already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// readDir is at most so many entries of a folder, sorted.
func readDir(files fs.FS, dir string, most int) ([]fs.DirEntry, error) {
	f, err := files.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("it is no folder")
	}
	list, err := d.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(list) > most {
		return nil, fmt.Errorf("it has more than %d entries", most)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, nil
}

// stat is what a name stands for, which is a regular file: pipes and devices are
// never opened.
func stat(files fs.FS, name string) (fs.FileInfo, error) {
	info, err := fs.Lstat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if _, ok := files.(plain); ok {
			return nil, errLink
		}
		if info, err = fs.Stat(files, name); err != nil {
			return nil, err
		}
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no plain file")
	}
	return info, nil
}

// readFile is at most so many bytes of a file.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	if _, err := stat(files, name); err != nil {
		return nil, err
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, most))
}

// walker finds the files of a skill.
type walker struct {
	files    fs.FS
	found    []File
	bytes    int64
	problems []Problem
	full     bool
}

func (w *walker) wrong(file, text string) {
	w.problems = append(w.problems, Problem{File: file, Text: text})
}

func (w *walker) walk(dir string, depth int) {
	list, err := readDir(w.files, dir, MaxListed)
	if err != nil {
		w.wrong(dir, linked(err))
		return
	}
	for _, d := range list {
		name := path.Join(dir, d.Name())
		switch {
		case w.full || name == fileName || strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__":
		case oddName(name):
			w.wrong(name, "a name with characters that are not to be read, or longer than 200 bytes")
		case !d.IsDir():
			w.file(name)
		case depth == MaxDepth:
			w.wrong(name, fmt.Sprintf("more than %d folders inside each other", MaxDepth))
		default:
			w.walk(name, depth+1)
		}
	}
}

func (w *walker) file(name string) {
	info, err := stat(w.files, name)
	if err != nil {
		w.wrong(name, linked(err))
		return
	}
	w.bytes += info.Size()
	switch {
	case len(w.found) == MaxFiles:
		w.full = true
		w.wrong(".", fmt.Sprintf("it has more than %d files", MaxFiles))
		return
	case w.bytes > MaxBytes:
		w.full = true
		w.wrong(".", fmt.Sprintf("its files are larger than %d MB together", MaxBytes>>20))
		return
	}
	script := strings.HasPrefix(name, "scripts/") || info.Mode()&0o111 != 0
	w.found = append(w.found, File{Path: name, Size: info.Size(), Executable: script})
}

func oddName(name string) bool {
	return len(name) > MaxPath || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || steers(r) || r != ' ' && unicode.IsSpace(r)
	})
}

// read are the contents of the files, in order. They are as large as they were
// when they were found, or there is an error.
func (s Skill) read() ([][]byte, error) {
	if len(s.Files) == 0 {
		return nil, nil
	}
	files, done, err := s.folder()
	if err != nil {
		return nil, fmt.Errorf("read skill %s: %w", s.Name, err)
	}
	defer done.Close() //nolint:errcheck // nothing was written
	contents := make([][]byte, len(s.Files))
	for i, f := range s.Files {
		contents[i], err = readFile(files, f.Path, f.Size+1)
		if err == nil && int64(len(contents[i])) != f.Size {
			err = errors.New("its size has changed")
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of skill %s: %w", f.Path, s.Name, err)
		}
	}
	return contents, nil
}
