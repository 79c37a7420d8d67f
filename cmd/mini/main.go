// Command mini lets a language model fix software in a sandbox, by bash alone.
package main

import (
	"os"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/helper/binaries"
)

func main() {
	binaries.Init(os.Stderr)
	os.Exit(cli.Main(cli.Arguments(os.Args), cmdutil.SystemStreams()))
}
