// Command serve is a model provider with scripted replies on loopback, for tests of clients:
//
//	go run ./model/fake/serve -replies replies.yaml -fault rate-limit@1
//
// See docs/fake-model.md.
package main

import (
	"os"

	"github.com/minibench/mini/model/fake"
)

func main() { os.Exit(fake.Main(os.Args[1:], os.Stdout, os.Stderr)) }
