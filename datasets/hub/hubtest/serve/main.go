// Command serve is a hub on loopback for scripts: it serves the repositories
// in a folder, DIR/org/name/files, until its standard input ends or it is
// interrupted. The first line that it prints is its address, for HF_ENDPOINT.
//
//	go run ./datasets/hub/hubtest/serve -gated org/other DIR
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/minibench/mini/datasets/hub/hubtest"
)

func main() {
	token := flag.String("token", "", "the token that is valid")
	private := flag.String("private", "", "repositories that need it, with commas between them")
	gated := flag.String("gated", "", "repositories whose terms nobody accepted, likewise")
	dribble := flag.Int("dribble", 0, "send files in chunks of so many bytes")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "serve: name the folder of the repositories")
		os.Exit(2)
	}
	p := &program{}
	s := hubtest.New(p)
	defer p.end()
	if err := add(s, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		p.failed = true
		return
	}
	s.Token(*token)
	s.Dribble(*dribble, nil)
	for name := range strings.FieldsFuncSeq(*private, comma) {
		s.Private(name)
	}
	for name := range strings.FieldsFuncSeq(*gated, comma) {
		s.Gated(name)
	}
	fmt.Println(s.URL)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // it ends with the program at the latest
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		stop()
	}()
	<-ctx.Done()
}

func comma(r rune) bool { return r == ',' }

// add reads every DIR/org/name.
func add(s *hubtest.Server, dir string) error {
	repos, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(repos) == 0 {
		return fmt.Errorf("find repositories (DIR/org/name) in %s: %w", dir, os.ErrNotExist)
	}
	for n, root := range repos {
		files := map[string][]byte{}
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(name)], err = os.ReadFile(path) //nolint:gosec // the user's own
			return err
		})
		if err != nil {
			return fmt.Errorf("read repository: %w", err)
		}
		s.Add(filepath.Base(filepath.Dir(root))+"/"+filepath.Base(root), hubtest.Commit(n+1), files)
	}
	return nil
}

// program is what a test is to hubtest.
type program struct {
	cleanups []func()
	failed   bool
}

func (p *program) Helper()          {}
func (p *program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }
func (p *program) Errorf(format string, args ...any) {
	p.failed = true
	fmt.Fprintf(os.Stderr, "serve: "+format+"\n", args...)
}

func (p *program) end() {
	for _, f := range p.cleanups {
		f()
	}
	if p.failed {
		os.Exit(1)
	}
}
