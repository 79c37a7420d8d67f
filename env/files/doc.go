// Package files turns files into tar streams and back, for sandboxes that carry
// files in and out (env.Files). It is the same code on both sides: linked into
// the helper, used by the local environment, and by whoever calls Put and Get.
//
//	var tree bytes.Buffer
//	err := files.Pack(&tree, "testdata/repo")        // one entry "repo", and all below it
//	err = box.Put(ctx, "/work", &tree)               // is /work/repo now
//	...
//	err = files.Unpack(&tree, t.TempDir(), files.Limits{})
//
// What travels is a name, any bytes of it; the content; the nine permission bits;
// the time of the last change, to the second. Owners, set-uid bits, extended
// attributes and holes do not. Symbolic links stay links. Sockets, pipes and
// devices are left out of a packed tree.
//
// A stream may come out of a sandbox, so Unpack trusts none of it: it writes
// below its folder only, follows no link on the way, replaces a file in one step
// (a half-written one never has its final name), and refuses with ErrRefused what
// no honest stream holds.
//
// Standard library only, because it is linked into the helper.
package files

import "errors"

// ErrRefused is wrapped by the error about a stream, or a tree, that breaks the
// rules of this package. What was unpacked before stays.
var ErrRefused = errors.New("refused")

// Bounds of every tree.
const (
	// MaxEntries is how many files, folders and links a tree may have.
	MaxEntries = 500_000
	// MaxBytes is how much content a tree may have, holes counted as zeros.
	MaxBytes = 16 << 30
	// MaxDepth is how many folders may be inside each other. Each takes an open
	// descriptor while it is worked in.
	MaxDepth = 200
)

// Limits bound what Unpack takes; zero fields mean the bounds above.
type Limits struct {
	Entries int
	Bytes   int64
	// OuterLinks permits symbolic links that lead, or might lead, out of the
	// folder. They are never followed here, but whoever reads the folder later
	// may follow them: permit them only where commands could make such links
	// themselves, inside a sandbox, or in the local environment, whose commands
	// are as free as their user.
	OuterLinks bool
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
