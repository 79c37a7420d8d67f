package undo

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Restored is what putting files back came to. Commits and what was staged stay
// as they are; Diff says whether there are any.
type Restored struct {
	// Back are files that are as they were again, Removed such as were new.
	Back, Removed []string
	// Kept are files that were left alone, since they are not as they were
	// when the person saw the diff.
	Kept []string
	// Failed are files that could not be put back, and why.
	Failed []error
}

// Restore puts the files back as they were when the snapshot was taken, and
// removes new ones. Seen is the Tree of the diff that a person decided by: what
// changed after it is kept. Empty stands for what is there now.
//
// Every file is replaced at once, and a second Restore does what the first one
// left.
func (s *Snapshot) Restore(ctx context.Context, seen string) (Restored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, err := s.restore(ctx, seen)
	if err != nil {
		return done, fmt.Errorf("put files back: %w", err)
	}
	return done, nil
}

func (s *Snapshot) restore(ctx context.Context, seen string) (Restored, error) {
	var done Restored
	now, err := s.look(ctx)
	if err != nil {
		return done, err
	}
	changes, err := s.changes(ctx, s.noted.Tree, now)
	if err != nil {
		return done, err
	}
	if seen != "" && seen != now {
		later, err := s.changes(ctx, seen, now)
		if err != nil {
			return done, err
		}
		changes = slices.DeleteFunc(changes, func(c change) bool {
			kept := slices.ContainsFunc(later, func(l change) bool { return l.path == c.path })
			if kept {
				done.Kept = append(done.Kept, c.path)
			}
			return kept
		})
	}
	root, err := os.OpenRoot(s.noted.Top)
	if err != nil {
		return done, err
	}
	err = errors.Join(s.apply(ctx, root, changes, &done), root.Close())
	if err != nil || len(done.Failed)+len(done.Kept) > 0 {
		return done, err
	}
	if now, err = s.look(ctx); err == nil && now != s.noted.Tree {
		err = errors.New("files changed again meanwhile")
	}
	return done, err
}

// change is a file that differs from how it was.
type change struct {
	path, object string // object is empty for a file that was not there
	mode         string
}

func (s *Snapshot) changes(ctx context.Context, was, is string) ([]change, error) {
	out, err := s.compare(ctx, 0, was, is, "--raw", "-z", "--no-renames", "--full-index")
	if err != nil {
		return nil, err
	}
	var all []change
	for f := range slices.Chunk(split(out), 2) {
		head := strings.Fields(f[0])
		if len(f) != 2 || len(head) != 5 {
			return nil, errors.New("git diff-tree: an answer that cannot be read")
		}
		c := change{path: f[1], object: head[2], mode: strings.TrimPrefix(head[0], ":")}
		switch {
		case c.mode == "160000" || head[1] == "160000": // submodules are left alone
			continue
		case head[4] == "A":
			c.object = ""
		}
		all = append(all, c)
	}
	return all, nil
}

// apply removes what is new, which may be in the way, and then puts back what
// is not as it was.
func (s *Snapshot) apply(ctx context.Context, root *os.Root, changes []change, done *Restored) error {
	var back []change
	for _, c := range changes {
		if c.object != "" {
			back = append(back, c)
			continue
		}
		if err := root.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			done.Failed = append(done.Failed, err)
			continue
		}
		done.Removed = append(done.Removed, c.path)
		// Folders that have nothing else go with them.
		for dir := path.Dir(c.path); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
	}
	if len(back) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var list strings.Builder
	for _, c := range back {
		list.WriteString(c.object + "\n")
	}
	cmd := exec.CommandContext(ctx, s.git, "cat-file", "--batch") //nolint:gosec // the git of PATH, and no argument from elsewhere
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.noted.Top, s.shadowEnv(nowIndex), apart()
	cmd.Stdin = strings.NewReader(list.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := s.putAll(root, back, bufio.NewReader(out), done); err != nil {
		cancel()       // nobody reads the rest
		_ = cmd.Wait() // it was killed
		return err
	}
	return cmd.Wait()
}

func (s *Snapshot) putAll(root *os.Root, back []change, contents *bufio.Reader, done *Restored) error {
	for _, c := range back {
		head, err := contents.ReadString('\n')
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		fields := strings.Fields(head)
		if len(fields) != 3 {
			done.Failed = append(done.Failed, fmt.Errorf("%s: its content is gone from the repository", c.path))
			continue
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		content := &io.LimitedReader{R: contents, N: size}
		if err := s.put(root, c, content); err != nil {
			done.Failed = append(done.Failed, err)
		} else {
			done.Back = append(done.Back, c.path)
		}
		if _, err := io.CopyN(io.Discard, contents, content.N+1); err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
	}
	return nil
}

// put makes a file anew and puts it in its place.
func (s *Snapshot) put(root *os.Root, c change, content io.Reader) error {
	dir := path.Dir(c.path)
	if dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Where mini is killed, the next Restore comes by the same name.
	made := path.Join(dir, fmt.Sprintf(".mini-restore-%x", sha256.Sum256([]byte(c.path)))[:32])
	if err := removed(root, made); err != nil {
		return err
	}
	if err := s.make(root, c, made, content); err != nil {
		return errors.Join(err, removed(root, made))
	}
	// A folder in its place is not replaced, but for an empty one.
	if info, err := root.Lstat(c.path); err == nil && info.IsDir() {
		if err := root.Remove(c.path); err != nil {
			return errors.Join(err, removed(root, made))
		}
	}
	if err := root.Rename(made, c.path); err != nil {
		return errors.Join(err, removed(root, made))
	}
	return nil
}

func removed(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Snapshot) make(root *os.Root, c change, name string, content io.Reader) error {
	if c.mode == "120000" {
		target, err := io.ReadAll(io.LimitReader(content, 1<<16))
		if err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	perm, noted := s.noted.Modes[c.path]
	switch {
	case noted:
	case c.mode == "100755":
		perm = plainProgram
	default:
		perm = plainFile
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(perm), f.Close())
}
