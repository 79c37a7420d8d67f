// Command mini-helper is the first process of every sandbox: it runs the
// commands that mini sends over its standard input and reports on its standard
// output (package helper has the frames). It is linked statically, needs
// nothing from the image it runs in, and says nothing on its standard error.
// Under the name of mini-tool it is the program by which those commands ask for
// tools (package minitool).
//
// Everything it started dies with it, and it dies with its input.
package main
