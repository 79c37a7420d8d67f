// Package demo is a dataset of five small instances for demonstrations. Each is a Python
// repository with a bug. The package has their rows in the format of SWE-bench, and scripted
// replies that fix the bugs.
//
// build.sh creates the repositories, with the same commits everywhere: scripts/images.sh runs
// it for the images, and Unpack for a directory on a machine without a container engine.
//
//	set, err := datasets.Load(ctx, []datasets.Source{datasets.Embedded("demo", demo.Rows())}, datasets.AllRows)
//	script, err := scripted.Parse("demo/replies.yaml", demo.Replies())
//	err = demo.Unpack(ctx, "minidemo__ledger-17", dir)
package demo

import (
	"bytes"
	"embed"
)

//go:embed build.sh all:instances
var recipes embed.FS

// rows.jsonl is generated from the directory instances; a test checks that it is up to date,
// and `go test ./datasets/demo -update` regenerates it.
//
//go:embed rows.jsonl
var rows []byte

//go:embed replies.yaml
var replies []byte

//go:embed replies-wrong.yaml
var wrongReplies []byte

// Rows returns the instances as JSON lines.
func Rows() []byte { return bytes.Clone(rows) }

// Replies returns the scripted replies for all instances, in the YAML format of
// model/scripted.
func Replies() []byte { return bytes.Clone(replies) }

// WrongReplies returns replies for one instance that do not fix the bug, to override those of
// Replies.
func WrongReplies() []byte { return bytes.Clone(wrongReplies) }
