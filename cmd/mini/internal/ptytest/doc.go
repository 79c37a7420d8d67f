// Package ptytest is for tests: a pseudo-terminal with a program on it, seen from
// the side of the person. It is for Linux; elsewhere there is nothing in it.
//
//	term := ptytest.Open(t, 80, 24)
//	term.Start(cmd)
//	term.Expect("Run this command?")
//	term.Type("\r")
package ptytest
