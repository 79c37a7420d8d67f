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

// fileName is the file that contains the text of a skill.
const fileName = "SKILL.md"

// Source is a directory to load skills from. It has either a subdirectory for
// each skill, or the files of a single skill.
type Source struct {
	// Name is the path of the source in messages.
	Name string
	// Files is the directory's content; nil for a DirSource.
	Files fs.FS
	// Optional says that the directory need not exist.
	Optional bool

	dir string // the directory of a DirSource
}

// DirSource returns a Source for a directory on this machine. Symbolic links
// must stay within the directory of their skill.
func DirSource(path string) Source { return Source{Name: path, dir: path} }

//go:embed all:shipped
var shipped embed.FS

// ShippedName is the name of the source of mini's own skills.
const ShippedName = "shipped"

// ShippedSource returns the source of mini's own skills.
func ShippedSource() Source {
	files, err := fs.Sub(shipped, "shipped")
	if err != nil {
		panic(err) // fs.Sub fails only for invalid paths
	}
	return Source{Name: ShippedName, Files: files}
}

// Load finds and reads the skills of all sources. If two valid skills have the
// same name, Load uses the one from the earlier source and adds a warning. It
// reports errors as Problems of the Set.
func Load(sources ...Source) *Set {
	l := &loader{set: &Set{}, sourceOf: map[string]string{}}
	for _, s := range sources {
		l.loadSource(s)
	}
	slices.SortFunc(l.set.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return l.set
}

// loader collects the skills of several sources.
type loader struct {
	set      *Set
	sourceOf map[string]string // source of each loaded skill, by the skill's name
	dir      string            // of the source or skill that is being loaded
}

func (l *loader) addProblem(p Problem) {
	p.folder = l.dir
	l.set.Problems = append(l.set.Problems, p)
}

func (l *loader) loadSource(s Source) {
	l.dir = s.Name
	var root *os.Root
	files, base := s.Files, path.Base(s.Name)
	if files == nil {
		var err error
		if root, err = os.OpenRoot(s.dir); err != nil {
			if !s.Optional || !errors.Is(err, fs.ErrNotExist) {
				l.addProblem(Problem{File: s.Name, Text: "cannot be read: " + errorText(err)})
			}
			return
		}
		defer root.Close() //nolint:errcheck // nothing was written
		files = root.FS()
		if abs, err := filepath.Abs(s.dir); err == nil {
			base = filepath.Base(abs)
		}
	}
	if _, err := fs.Lstat(files, fileName); err == nil {
		l.loadSkill(s, files, base, s.Name)
		return
	}
	list, err := fs.ReadDir(files, ".")
	if err != nil {
		l.addProblem(Problem{File: s.Name, Text: errorText(err)})
		return
	}
	count := 0
	for _, d := range list {
		info, err := fs.Stat(files, d.Name())
		if strings.HasPrefix(d.Name(), ".") || err == nil && !info.IsDir() {
			continue
		}
		if count++; count > MaxSkills {
			l.addProblem(Problem{File: s.Name, Text: fmt.Sprintf("more than %d directories; the others are ignored", MaxSkills)})
			return
		}
		l.loadDir(s, root, d.Name())
		l.dir = s.Name
	}
}

// loadDir loads the skill in one directory. For a DirSource it reads nothing
// outside the directory.
func (l *loader) loadDir(s Source, root *os.Root, name string) {
	l.dir = path.Join(s.Name, name)
	var files fs.FS
	var err error
	if root == nil {
		files, err = fs.Sub(s.Files, name)
	} else {
		var sub *os.Root
		if sub, err = root.OpenRoot(name); err == nil {
			defer sub.Close() //nolint:errcheck // nothing was written
			files = sub.FS()
		}
	}
	if err != nil {
		l.addProblem(Problem{Skill: name, File: l.dir, Text: openProblem(err)})
		return
	}
	l.loadSkill(s, files, name, l.dir)
}

// loadSkill loads one skill. folder is the name of the skill's directory, dir
// the directory's path.
func (l *loader) loadSkill(s Source, files fs.FS, folder, dir string) {
	l.dir = path.Join(dir, "")
	file := path.Join(dir, fileName)
	data, _, err := readFile(files, fileName, MaxText+1)
	if errors.Is(err, fs.ErrNotExist) {
		l.addProblem(Problem{Skill: folder, File: l.dir, Text: fileName + " is missing", Warning: true})
		return
	}
	if err != nil {
		l.addProblem(Problem{Skill: folder, File: file, Text: openProblem(err)})
		return
	}
	skill, problems := Parse(folder, data)
	for i := range problems {
		problems[i].File = file
	}
	skillFiles, fileProblems := readFiles(files)
	for _, p := range fileProblems {
		problems = append(problems, Problem{Skill: folder, File: path.Join(dir, p.File), Text: p.Text})
	}
	for _, p := range problems {
		l.addProblem(p)
	}
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return
	}
	if firstSource, exists := l.sourceOf[skill.Name]; exists {
		l.addProblem(Problem{Skill: folder, File: file, Text: "the skill of this name in " + firstSource + " is used instead of this one", Warning: true})
		return
	}
	l.sourceOf[skill.Name] = s.Name
	sum := sha256.Sum256(data)
	skill.Source, skill.Path, skill.Files, skill.sum = s.Name, l.dir, skillFiles, sum[:]
	l.set.Skills = append(l.set.Skills, skill)
}

// openProblem describes why a file could not be opened.
func openProblem(err error) string {
	if strings.Contains(err.Error(), "escapes") {
		return "the symbolic link leads, or may lead, out of its directory"
	}
	return "cannot be read: " + errorText(err)
}

// errorText returns the text of a file system error without its path.
func errorText(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// readFile returns the first limit bytes of a regular file. It never opens
// pipes or devices.
func readFile(files fs.FS, name string, limit int64) ([]byte, fs.FileInfo, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file")
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, info, err
}

// readFiles returns the files of a skill except SKILL.md, hidden files and
// __pycache__, and the problems with the files.
func readFiles(files fs.FS) (found []File, problems []Problem) {
	remaining := int64(MaxBytes)
	addProblem := func(file, text string) { problems = append(problems, Problem{File: file, Text: text}) }
	walk := func(name string, d fs.DirEntry, err error) error {
		skip := error(nil)
		if d != nil && d.IsDir() {
			skip = fs.SkipDir
		}
		switch {
		case err != nil:
			addProblem(name, openProblem(err))
			return skip
		case name == "." || name == fileName:
			return nil
		case strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__":
			return skip
		case isUnsafeName(name):
			addProblem(name, "the name has control characters or is longer than 200 bytes")
			return skip
		case d.IsDir() && strings.Count(name, "/") == MaxDepth:
			addProblem(name, fmt.Sprintf("directories are nested more than %d deep", MaxDepth))
			return skip
		case d.IsDir():
			return nil
		case len(found) == MaxFiles:
			addProblem(".", fmt.Sprintf("the skill has more than %d files", MaxFiles))
			return fs.SkipAll
		}
		data, info, err := readFile(files, name, remaining+1)
		if err != nil {
			addProblem(name, openProblem(err))
			return nil
		}
		if remaining -= int64(len(data)); remaining < 0 {
			addProblem(".", fmt.Sprintf("the files have more than %d MB in total", MaxBytes>>20))
			return fs.SkipAll
		}
		isExecutable := strings.HasPrefix(name, "scripts/") || info.Mode()&0o111 != 0
		found = append(found, File{Path: name, Size: int64(len(data)), Executable: isExecutable, data: data})
		return nil
	}
	_ = fs.WalkDir(files, ".", walk) // errors are reported as problems
	return found, problems
}

func isUnsafeName(name string) bool {
	return len(name) > MaxPath || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || isUnsafe(r) || r != ' ' && unicode.IsSpace(r)
	})
}
