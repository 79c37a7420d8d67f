package repository

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// check checks a patch of the agent against the base. If git rejects it, it tries again
// with the newlines that the patch may have lost at its end, and then against the commit.
func (s *shadow) check(ctx context.Context, patch []byte) (Response, error) {
	regenerate := !utf8.Valid(patch)
	if regenerate {
		if err := s.setAttributes(binaryAttributes(patch)); err != nil {
			return Response{}, err
		}
	}
	end, recheck := missingNewlines(patch)
	whole := slices.Concat(patch, []byte(end))
	res := Response{Patch: patch, Regenerated: regenerate}
	tree, err := s.applies(ctx, s.base, patch)
	rejected, isRejected := errors.AsType[rejection](err)
	if err != nil && !isRejected {
		return Response{}, err
	}
	if isRejected || recheck {
		mended, err := s.applies(ctx, s.base, whole)
		switch _, again := errors.AsType[rejection](err); {
		case err != nil && !again:
			return Response{}, err
		case err == nil && (isRejected || mended != tree):
			tree, res.Patch, res.NewlineAdded, isRejected = mended, whole, true, false
		}
	}
	if isRejected && s.base != s.commit {
		rebased, err := s.rebase(ctx, patch, whole)
		switch _, again := errors.AsType[rejection](err); {
		case err != nil && !again:
			return Response{}, err
		case err == nil:
			tree, res.Regenerated, isRejected = rebased, true, false
		}
	}
	if isRejected {
		return Response{Problem: string(rejected)}, nil
	}
	res.Tree = tree
	if !res.Regenerated {
		return res, nil
	}
	res.Patch, err = s.rawPatch(ctx, s.base, tree, maxOutput)
	switch {
	case err != nil:
		return Response{}, err
	case !utf8.Valid(res.Patch):
		return Response{Problem: "error: it names files that are not UTF-8"}, nil
	case len(res.Patch) == 0:
		return Response{Problem: "error: it has only what was changed before the work began"}, nil
	}
	return res, nil
}

// applies returns the tree that a patch makes of a base. The patch is applied to an index,
// then to files, which has to give the same.
func (s *shadow) applies(ctx context.Context, base string, patch []byte) (string, error) {
	tree, err := s.applyToIndex(ctx, base, patch)
	if err != nil {
		return "", err
	}
	changed, err := s.changes(ctx, base, tree)
	if err != nil {
		return "", err
	}
	attributes, err := s.with("GIT_INDEX_FILE="+s.file("applied.index")).list(ctx, nil, "ls-files", "-z", "--", ".gitattributes", "*/.gitattributes")
	if err != nil {
		return "", err
	}
	attributes = slices.DeleteFunc(attributes, func(name string) bool {
		return slices.ContainsFunc(changed, func(c change) bool { return c.name == name })
	})
	onFiles, err := s.applyToFiles(ctx, base, patch, changed, attributes)
	if err == nil && onFiles != tree {
		err = rejection("applied to files it gives others than applied to the index")
	}
	return tree, err
}

// rebase handles a patch of git diff, which is against the commit and therefore includes
// the changes from before the start. Each file of the patch replaces that of the base,
// with the content that the patch makes of the commit.
func (s *shadow) rebase(ctx context.Context, patches ...[]byte) (string, error) {
	var tree string
	var err error
	for _, patch := range patches {
		if tree, err = s.applies(ctx, s.commit, patch); err == nil {
			break
		}
		if _, ok := errors.AsType[rejection](err); !ok {
			break
		}
	}
	if err != nil {
		return "", err
	}
	changed, err := s.changes(ctx, s.commit, tree)
	if err != nil {
		return "", err
	}
	var entries []string
	for _, c := range changed {
		entries = append(entries, c.entry)
	}
	g := s.with("GIT_INDEX_FILE=" + s.file("rebased.index"))
	if err := g.do(ctx, nil, "read-tree", s.base); err != nil {
		return "", err
	}
	if err := g.do(ctx, joinNUL(entries), "update-index", "-z", "--replace", "--index-info"); err != nil {
		return "", err
	}
	return g.writeTree(ctx)
}

// missingNewlines returns the newlines that a patch may have lost at its end, for example
// in a shell's $(...): the end of the last line, or the empty line after a binary file.
// recheck is true if the patch may apply without them but incompletely: without the empty
// line git omits the binary file and reports no error.
func missingNewlines(patch []byte) (end string, recheck bool) {
	hasBinary := bytes.Contains(patch, []byte("\nGIT binary patch\n"))
	switch {
	case !bytes.HasSuffix(patch, []byte("\n")) && hasBinary:
		return "\n\n", true
	case !bytes.HasSuffix(patch, []byte("\n")):
		return "\n", true
	}
	return "\n", hasBinary && !strings.HasSuffix(string(patch[max(0, len(patch)-2):]), "\n\n")
}
