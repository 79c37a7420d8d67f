//go:build !linux

// Command mini-bench measures the overhead of a sandbox. It uses resource usage data
// that only Linux provides.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mini-bench: requires Linux")
	os.Exit(2)
}
