//go:build race

package tui

const raced = true
