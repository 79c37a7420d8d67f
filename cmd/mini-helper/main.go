// Command mini-helper is the first process of every sandbox. It runs the commands that
// mini sends to its standard input and writes their results to its standard output;
// package helper defines the protocol. It is statically linked, uses no files of the
// image, and writes nothing to standard error. Package program has its other names.
//
// At the end of its input it kills all processes that it started, and exits.
package main

import (
	"runtime"

	"github.com/minibench/mini/env/helper/program"
)

// This program is the helper whatever its arguments are, and program.Main needs the first
// thread.
func init() { runtime.LockOSThread() }

func main() { program.Main() }
