// Command mini-helper is the first process of every sandbox. It runs the commands that
// mini sends to its standard input and writes their results to its standard output;
// package helper defines the protocol. It is statically linked, uses no files of the
// image, and writes nothing to standard error. Under the name mini-tool it is the
// program with which those commands call tools (package minitool), under the name
// mini-repository the program that works on a repository (package repository). In a pod it
// has other subcommands (package pod).
//
// At the end of its input it kills all processes that it started, and exits.
package main
