// Package minitool implements the program mini-tool, with which the commands of a
// sandbox call tools. It is the helper's binary under another name. It sends one frame
// to the helper over a Unix socket and reads one (see helper.ToolRequest), or runs a
// tool of package filetools itself.
//
// Its environment holds the address of the socket and a token, which are not secret to
// the command that runs mini-tool. Without them mini-tool prints an error and exits
// with 1, unless it runs the tool itself.
//
// Besides packages of mini, the package imports the standard library only, without
// package net, to keep the program small: it is copied into every sandbox.
package minitool
