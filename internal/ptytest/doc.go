// Package ptytest runs a program on a pseudo-terminal in tests and acts as its user. It is
// empty on systems other than Linux.
//
//	term := ptytest.Open(t, 80, 24)
//	term.Start(cmd)
//	term.Expect("Run this command?")
//	term.Type("\r")
package ptytest
