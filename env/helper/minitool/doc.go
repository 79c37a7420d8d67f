// Package minitool is the program mini-tool: what the commands of a sandbox ask
// by. It is the helper under another name, and takes the shortest way there is:
// one frame to the helper over a socket, one back (see helper.Ask), or nothing at
// all for the tools of package files.
//
// What it asks with stands in its environment; without that it says so and exits
// with 1. Nothing about it is secret to the command that calls it.
//
// Standard library only, and not package net: the program is copied into every
// sandbox.
package minitool
