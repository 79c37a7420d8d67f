// Package saved keeps the commands that a user always allows in a folder, for
// policy.AllowCommand. They are in the user's state folder, never in the folder
// itself, whose files the model can change.
//
//	store, err := saved.Open(dir, folder)
//	err = store.Add("go test")
//	commands, err := store.Commands()
package saved

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/userdirs"
)

// Store has the allowed commands of one folder.
type Store struct {
	folder string // without symbolic links
	file   string
}

// document is the content of the file.
type document struct {
	Folder string   `json:"folder"`
	Allow  []string `json:"allow"`
}

// MaxCommands is the maximum number of commands of a folder.
const MaxCommands = 200

// ErrInside means that the folder contains the store, which commands in the folder could change.
var ErrInside = errors.New("the folder contains mini's state")

// Open returns the store of a folder below dir.
func Open(dir, folder string) (Store, error) {
	path, key, err := userdirs.FolderKey(folder)
	if err != nil {
		return Store{}, fmt.Errorf("open allowed commands: %w", err)
	}
	for parent := dir; ; parent = filepath.Dir(parent) { // dir need not exist yet
		resolved, err := filepath.EvalSymlinks(parent)
		if err == nil && (resolved == path || path == "/" || strings.HasPrefix(resolved, path+"/")) {
			return Store{}, fmt.Errorf("open allowed commands: %w", ErrInside)
		}
		if err == nil || parent == filepath.Dir(parent) {
			break
		}
	}
	return Store{folder: path, file: filepath.Join(dir, key+".json")}, nil
}

// Folder returns the folder without symbolic links.
func (s Store) Folder() string { return s.folder }

// Commands returns the allowed commands in the order in which they were added.
func (s Store) Commands() ([]string, error) {
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var d document
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err == nil && d.Folder != s.folder {
		err = fmt.Errorf("%s is about the folder %s", s.file, d.Folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read allowed commands: %w", err)
	}
	return d.Allow, nil
}

// Add adds a command unless the store has it.
func (s Store) Add(command string) error {
	return s.change(func(all []string) ([]string, error) {
		switch {
		case slices.Contains(all, command):
			return all, nil
		case len(all) >= MaxCommands:
			return nil, fmt.Errorf("%d commands are allowed already", len(all))
		}
		return append(all, command), nil
	})
}

// Remove removes the command with a number from 1, and returns it.
func (s Store) Remove(number int) (command string, err error) {
	err = s.change(func(all []string) ([]string, error) {
		if number < 1 || number > len(all) {
			return nil, fmt.Errorf("there is no rule %d", number)
		}
		command = all[number-1]
		return slices.Delete(all, number-1, number), nil
	})
	return command, err
}

// change changes the commands while no other process does.
func (s Store) change(f func([]string) ([]string, error)) error {
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return fmt.Errorf("change allowed commands: %w", err)
	}
	lock := flock.New(s.file+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("change allowed commands: %w", err)
	}
	defer func() { _ = lock.Close() }()
	all, err := s.Commands()
	if err == nil {
		all, err = f(all)
	}
	if err != nil {
		return fmt.Errorf("change allowed commands: %w", err)
	}
	text, err := json.MarshalIndent(document{s.folder, all}, "", "  ")
	if err != nil {
		return fmt.Errorf("change allowed commands: %w", err)
	}
	return atomicfile.Write(s.file, append(text, '\n'), 0o600)
}
