// Package minitool implements the program mini-tool, with which the commands of a
// sandbox call tools. It is the helper's binary under another name. It sends one frame
// to the helper over a Unix socket and reads one (see helper.ToolRequest), or runs a
// tool of package files itself.
//
// Its environment holds the address of the socket and a token; without them it prints
// an error and exits with 1. They are not secret to the command that calls it.
//
// Standard library only, and without package net: the program is copied into every
// sandbox.
package minitool
