// Package grade turns the log of an evaluation into a verdict, as the official
// SWE-bench harness does (github.com/SWE-bench/SWE-bench, release 5.0.2), and
// knows the files that harness writes. It runs nothing: package evaluate does.
package grade
