//go:build race

package helper_test

// tenth makes fewer of what the race detector makes ten times as heavy.
const tenth = 10
