// Package program is the program that runs inside sandboxes: the helper and, under other
// names, mini-tool (package minitool) and the program that works on a repository (package
// repository). In a pod it has other subcommands (package pod).
//
// cmd/mini-helper consists of this package only. Any other executable that contains it can
// be the helper, too; see binaries.Init.
package program
