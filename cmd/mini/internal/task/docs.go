package task

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/task/projectdocs"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/table"
	"github.com/minibench/mini/internal/userdirs"
)

// readProjectDocs reads the instructions of the user and, if commands run on this machine, of
// the project, and says which there are. Only interactive sessions have them. A file that
// cannot be read is a warning.
func (t *session) readProjectDocs() error {
	if !t.Interactive || t.options.noProjectDocs || !t.cfg.Agent.ProjectDocs {
		return nil
	}
	var userDir, dir string
	if file := userdirs.ConfigFile(); file != "" {
		userDir = filepath.Dir(file)
	}
	if envopen.IsHostClass(t.cfg.Environment.Class) {
		dir = t.dir()
	}
	var err error
	if t.docs, err = projectdocs.Read(userDir, dir); err != nil {
		if _, err := fmt.Fprintln(t.Err, "mini: warning:", cmdutil.Sanitize(strings.ReplaceAll(err.Error(), "\n", "; "))); err != nil {
			return err
		}
	}
	if len(t.docs) == 0 {
		return nil
	}
	var names []string
	for _, f := range t.docs {
		size := table.SizeText(int64(f.Bytes))
		if f.IsCut {
			size = "the first " + size
		}
		names = append(names, fmt.Sprintf("%s (%s)", cmdutil.Sanitize(f.Path), size))
	}
	_, err = fmt.Fprintf(t.Err, "mini: part of the prompt; --no-project-docs leaves it out:\n  %s\n", strings.Join(names, "\n  "))
	return err
}
