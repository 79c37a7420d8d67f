// Package files converts files to tar streams and back, for sandboxes that copy files
// in and out (env.Files). Both sides of a copy use it: the helper or the local
// environment, and the callers of Put and Get.
//
//	var tree bytes.Buffer
//	err := files.Pack(&tree, "testdata/repo")        // the directory "repo" with its contents
//	err = sandbox.Put(ctx, "/work", &tree)           // creates /work/repo
//	...
//	err = files.Unpack(&tree, t.TempDir(), files.Limits{})
//
// A stream preserves the name, which need not be valid UTF-8, the content, the nine
// permission bits, and the modification time in seconds, which Unpack sets for regular
// files only. Owners, set-uid bits, extended attributes and holes are not preserved.
// Symbolic links stay links. Sockets, pipes and devices in a directory are skipped.
//
// A stream may come from a sandbox, so Unpack does not trust it: it writes inside its
// directory only, follows no symbolic links there, replaces files atomically, and
// rejects invalid streams with ErrRefused.
//
// The package imports the standard library only, because the helper links it.
package files

import "errors"

// ErrRefused is wrapped by the error about a stream or tree that violates the rules of
// this package. Files unpacked before the error remain.
var ErrRefused = errors.New("refused")

// Limits of every tree.
const (
	// MaxEntries is the maximum number of files, directories and links.
	MaxEntries = 500_000
	// MaxBytes is the maximum total size of the files; holes count as zeros.
	MaxBytes = 16 << 30
	// MaxDepth is the maximum nesting depth of directories below the top one. Each level
	// needs an open descriptor.
	MaxDepth = 200
)

// Limits are the limits of Unpack; zero numbers mean the constants above.
type Limits struct {
	Entries int
	Bytes   int64
	// AllowOutsideLinks permits symbolic links whose target is or may be outside the
	// directory. Unpack does not follow them, but later readers may. Permit them only
	// where commands could create such links themselves: inside a sandbox, or in the
	// local environment, where commands have the rights of the user.
	AllowOutsideLinks bool
}

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = MaxEntries
	}
	if l.Bytes <= 0 {
		l.Bytes = MaxBytes
	}
	return l
}
