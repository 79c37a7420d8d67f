package repository

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// patch returns the patch between two trees. A rename is a deletion and a new file, which
// every tool can apply. Binary files and text that is not UTF-8 are binary patches.
func (s *shadow) patch(ctx context.Context, from, to string, most int) ([]byte, error) {
	p, err := s.rawPatch(ctx, from, to, most)
	if err == nil && !isText(p) {
		if err = s.setAttributes(binaryAttributes(p)); err == nil {
			p, err = s.rawPatch(ctx, from, to, most)
		}
	}
	return quoteHeaders(p), err
}

func (s *shadow) rawPatch(ctx context.Context, from, to string, most int) ([]byte, error) {
	out := &buffer{limit: most}
	_, err := s.run(ctx, nil, out, "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff",
		"--no-textconv", "-U3", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", from, to)
	if errors.Is(err, errOutputLimit) {
		return nil, fmt.Errorf("%w of %d bytes", errTooLarge, most)
	}
	return out.bytes, err
}

// setAttributes adds to the attributes of the repository.
func (s *shadow) setAttributes(attributes []byte) error {
	return os.WriteFile(filepath.Join(s.path, "info", "attributes"), slices.Concat(s.infoAttrs, attributes), 0o600)
}

// change is a file that differs between two trees.
type change struct {
	status byte // as in git diff-tree --raw: A, D, M or T
	name   string
	entry  string // of the second tree, as update-index --index-info has it
}

func (s *shadow) changes(ctx context.Context, from, to string) (all []change, err error) {
	fields, err := s.list(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--ignore-submodules=all", from, to)
	for pair := range slices.Chunk(fields, 2) {
		info := strings.Fields(pair[0]) // ":MODE MODE HASH HASH STATUS"
		if len(pair) != 2 || len(info) != 5 {
			return nil, errors.New("git diff-tree: invalid output")
		}
		all = append(all, change{info[4][0], pair[1], info[1] + " " + info[3] + "\t" + pair[1]})
	}
	return all, err
}

// rejection is the message of a git that rejects a patch.
type rejection string

func (r rejection) Error() string { return string(r) }

// asRejection returns an error of git apply as a rejection, unless the reason is another.
func asRejection(err error) error {
	if e, ok := errors.AsType[*gitError](err); ok && !errors.Is(err, errNoSpace) {
		return rejection(e.Error())
	}
	return err
}

// applyToIndex returns the tree that a patch makes of a base; a rejection if git rejects
// the patch.
func (s *shadow) applyToIndex(ctx context.Context, base string, patch []byte) (tree string, err error) {
	g := s.with("GIT_INDEX_FILE=" + s.file("applied.index"))
	if err := g.do(ctx, nil, "read-tree", base); err != nil {
		return "", err
	}
	if err := g.do(ctx, patch, "apply", "--cached", "--whitespace=nowarn", "-"); err != nil {
		return "", asRejection(err)
	}
	return g.writeTree(ctx)
}

// applyToFiles returns the tree of the files that a patch makes of a base, in an empty
// folder. changed are the files of the patch and attributes the .gitattributes files of
// the base; only these are checked out.
func (s *shadow) applyToFiles(ctx context.Context, base string, patch []byte, changed []change, attributes []string) (string, error) {
	clean := s.file("clean")
	if err := errors.Join(os.RemoveAll(clean), os.Mkdir(clean, 0o700)); err != nil {
		return "", err
	}
	g := s.with("GIT_WORK_TREE="+clean, "GIT_INDEX_FILE="+s.file("clean.index"))
	g.dir = clean
	if err := g.do(ctx, nil, "read-tree", base); err != nil {
		return "", err
	}
	var deleted, others []string
	names := slices.Clone(attributes)
	for _, c := range changed {
		if c.status != 'A' {
			names = append(names, c.name)
		}
		if c.status == 'D' {
			deleted = append(deleted, c.name)
		} else {
			others = append(others, c.name)
		}
	}
	var err error
	switch {
	case bytes.Contains(patch, []byte("\ncopy from ")): // of any file
		err = g.do(ctx, nil, "checkout-index", "-q", "-f", "-a")
	case len(names) > 0:
		err = g.do(ctx, joinNUL(names), "checkout-index", "-q", "-f", "-z", "--stdin")
	}
	if err != nil {
		return "", err
	}
	if err := g.do(ctx, patch, "apply", "--whitespace=nowarn", "-"); err != nil {
		return "", asRejection(err)
	}
	if err := g.forceRemove(ctx, deleted); err != nil {
		return "", err
	}
	if len(others) > 0 {
		if err := g.do(ctx, joinNUL(others), "update-index", "-z", "--add", "--replace", "--stdin"); err != nil {
			return "", err
		}
	}
	return g.writeTree(ctx)
}

// verify checks that a patch of this package, applied to the files of the base, gives a
// tree. The error is a rejection if it does not.
func (s *shadow) verify(ctx context.Context, patch []byte, f *files) error {
	changed, err := s.changes(ctx, s.base, f.tree)
	if err != nil {
		return err
	}
	tree, err := s.applyToFiles(ctx, s.base, patch, changed, f.attributes)
	if err == nil && tree != f.tree {
		err = rejection("applied to the files at the start it gives other files")
	}
	return err
}
