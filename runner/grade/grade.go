// Package grade turns the log of an evaluation into a verdict, as the official
// SWE-bench harness does (github.com/SWE-bench/SWE-bench, release 5.0.2). It
// also reads and writes the files of that harness. Package evaluate runs the
// tests.
package grade
