package repository

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// findTime bounds the time for the location and the settings. Git would wait for a pipe
// that a configuration file includes.
const findTime = 20 * time.Second

// missing says why there is no repository. It is an error that is not reported as one.
type missing string

func (m missing) Error() string { return string(m) }

// found is the repository around the working directory.
type found struct {
	git
	Repository
	gitDir, commonDir, top string
	bound                  string // real path of Request.Bound
	head, headTree         string // empty if there is no commit
}

// find finds the repository around the working directory. If the request has a bound,
// that is a folder which was made for the sandbox, and a repository around it belongs to
// the user.
func find(ctx context.Context, req Request) (*found, error) {
	ctx, cancel := withLimit(ctx, findTime)
	defer cancel()
	g, err := findGit(req.Contained)
	if err != nil {
		return nil, missing("no git")
	}
	f := &found{git: g, bound: string(req.Bound)}
	if f.bound != "" {
		if f.bound, err = filepath.EvalSymlinks(f.bound); err != nil {
			return nil, missing("no work folder")
		}
		// Git splits this variable at colons, so what it finds is checked as well.
		f.git = f.with("GIT_CEILING_DIRECTORIES=" + filepath.Dir(f.bound))
	}
	gitFile := ""
	if req.Contained {
		// The owner of the files does not matter. Older versions of git have no setting
		// for this, but they do not check a repository that is given by GIT_DIR.
		dir, err := os.Getwd()
		for ; err == nil; dir = filepath.Dir(dir) {
			if _, statErr := os.Lstat(filepath.Join(dir, ".git")); statErr == nil {
				gitFile = filepath.Join(dir, ".git")
				f.git = f.with("GIT_DIR="+gitFile, "GIT_WORK_TREE="+dir)
				break
			}
			if dir == "/" {
				break
			}
		}
	}
	if !f.locate(ctx) || f.bound != "" && !isBelow(f.bound, f.top) {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if gitFile != "" {
			return nil, errUnreadable
		}
		return nil, missing("no git repository")
	}
	f.dir = f.top
	f.GitDir, f.CommonDir, f.Top = []byte(f.gitDir), []byte(f.commonDir), []byte(f.top)
	return f, nil
}

// locate asks git for the folders and for HEAD, all at once unless a path has a newline.
func (f *found) locate(ctx context.Context) bool {
	questions := []string{"--show-toplevel", "--absolute-git-dir", "--git-common-dir", "HEAD^{commit}", "HEAD^{tree}"}
	out, _ := f.output(ctx, nil, append([]string{"rev-parse"}, questions...)...) // it fails without a commit
	lines := strings.Split(string(out), "\n")
	if len(lines) != 6 || !IsHash(lines[3]) || !IsHash(lines[4]) {
		lines = nil
		for _, q := range questions {
			lines = append(lines, f.text(ctx, "rev-parse", "--verify", q))
			if strings.HasPrefix(q, "--") {
				lines[len(lines)-1] = f.text(ctx, "rev-parse", q)
			}
		}
	}
	f.top, f.gitDir, f.commonDir = lines[0], lines[1], lines[2]
	if IsHash(lines[3]) && IsHash(lines[4]) {
		f.head, f.headTree = lines[3], lines[4]
	}
	if f.top == "" || f.gitDir == "" {
		return false
	}
	var err error
	f.commonDir, err = filepath.Abs(f.commonDir)
	if err == nil {
		f.commonDir, err = filepath.EvalSymlinks(f.commonDir)
	}
	return err == nil
}

// isBelow reports whether path is dir or inside it. Both are real paths.
func isBelow(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// fileSettings match the settings on how files become objects.
const fileSettings = `^(core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|bigfilethreshold|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone)|filter\..*)$`

// readSettings reads the settings on how files become objects. They are read at the
// start because the agent may change them later. Outside a container, the programs of
// filters are those of the user's own configuration, never of the repository's.
func (f *found) readSettings(ctx context.Context, contained bool) error {
	ctx, cancel := withLimit(ctx, findTime)
	defer cancel()
	all, err := f.list(ctx, nil, "config", "-z", "--get-regexp", fileSettings)
	if err != nil && context.Cause(ctx) != nil {
		return err
	}
	isFilter := func(entry string) bool { return strings.HasPrefix(entry, "filter.") }
	if !contained && slices.ContainsFunc(all, isFilter) {
		all = slices.DeleteFunc(all, isFilter)
		own, err := f.with("GIT_DIR=/nonexistent").list(ctx, nil, "config", "-z", "--get-regexp", `^filter\..*`)
		if err != nil && context.Cause(ctx) != nil {
			return err
		}
		all = append(all, own...)
	}
	all = slices.DeleteFunc(all, f.isBlocking)
	f.Settings = joinNUL(all)
	return nil
}

// isBlocking reports whether a setting names a pipe or another special file, which git
// would wait for.
func (f *found) isBlocking(entry string) bool {
	key, value, _ := strings.Cut(entry, "\n")
	if key != "core.excludesfile" && key != "core.attributesfile" {
		return false
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = filepath.Join(os.Getenv("HOME"), rest)
	} else if !filepath.IsAbs(value) {
		value = filepath.Join(f.top, value)
	}
	info, err := os.Stat(value) //nolint:gosec // it is only looked at
	return err == nil && !info.Mode().IsRegular()
}

// emptyTree returns the hash of the empty tree, in the repository's format.
func (f *found) emptyTree(ctx context.Context) (string, error) {
	out, err := f.output(ctx, []byte{}, "hash-object", "-t", "tree", "--stdin")
	return strings.TrimSpace(string(out)), err
}

// settingsFile returns the configuration of the shadow git directory: settings that mini
// needs, and the given ones, which have the form of git config -z. No other settings of
// the repository apply, because some of them run programs.
func settingsFile(base string, settings []byte) []byte {
	var s bytes.Buffer
	// Names are quoted to be ASCII. Objects are temporary and not compressed.
	s.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\thooksPath = /dev/null\n\tquotePath = true\n\tlooseCompression = 0\n")
	if len(base) == 64 {
		s.WriteString("\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n")
	}
	for _, entry := range splitNUL(settings) {
		key, value, hasValue := strings.Cut(entry, "\n")
		section, rest, ok := strings.Cut(key, ".")
		if !ok {
			continue
		}
		if at := strings.LastIndexByte(rest, '.'); at >= 0 {
			s.WriteString("[" + section + " " + quoteSetting(rest[:at]) + "]\n\t" + rest[at+1:])
		} else {
			s.WriteString("[" + section + "]\n\t" + rest)
		}
		if hasValue {
			s.WriteString(" = " + quoteSetting(value))
		}
		s.WriteByte('\n')
	}
	return s.Bytes()
}

// quoteSetting quotes a value for a git configuration file.
func quoteSetting(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}

// isSparse reports whether the settings ask for a sparse checkout.
func isSparse(settings []byte) bool {
	return slices.ContainsFunc(splitNUL(settings), func(entry string) bool {
		value, ok := strings.CutPrefix(strings.ToLower(entry), "core.sparsecheckout")
		return ok && slices.Contains([]string{"", "\ntrue", "\nyes", "\non", "\n1"}, value)
	})
}
