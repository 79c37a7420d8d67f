// Package demo is a set of five instances made for watching mini at work: tiny
// Python repositories, each with a bug, written for this purpose and complete
// as rows of the SWE-bench family, and scripted replies that fix them.
//
// The repositories exist as a recipe (see build.sh) which makes the same
// commits everywhere: in the images that scripts/images.sh builds, and, by
// Unpack, in a folder of a machine without a container engine.
//
//	set, err := datasets.Load(ctx, []datasets.Source{datasets.Embedded("demo", demo.Rows())}, datasets.Selection{})
//	script, err := scripted.Parse("demo/replies.yaml", demo.Replies())
//	err = demo.Unpack(ctx, "minidemo__ledger-17", dir)
package demo

import (
	"bytes"
	"embed"
)

//go:embed build.sh all:instances
var recipes embed.FS

// rows.jsonl is made from the folders under instances; the tests hold it to
// them, and `go test ./datasets/demo -update` writes it anew.
//
//go:embed rows.jsonl
var rows []byte

//go:embed replies.yaml
var replies []byte

//go:embed replies-wrong.yaml
var wrongReplies []byte

// Rows returns the instances as JSON lines.
func Rows() []byte { return bytes.Clone(rows) }

// Replies returns the scripted replies of all instances, as the YAML that
// model/scripted reads.
func Replies() []byte { return bytes.Clone(replies) }

// WrongReplies returns replies that do not fix what they are about: those of one
// instance, to be laid over Replies. A verdict that tells them from good ones is
// worth something.
func WrongReplies() []byte { return bytes.Clone(wrongReplies) }
