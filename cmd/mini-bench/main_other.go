//go:build !linux

// Command mini-bench measures what a sandbox costs. It reads the kernel's
// accounts, and works on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mini-bench: works on Linux only")
	os.Exit(2)
}
