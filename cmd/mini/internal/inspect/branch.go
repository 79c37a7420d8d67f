package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// branchCommand is the command that lets a model go on after a step.
func branchCommand(t *Trajectory, step int) (string, error) {
	it := t.Item
	switch {
	case step < 1:
		return "", errors.New("a branch goes on after a step: press b at step 1 or later")
	case it.Row > 0:
		return "", errors.New("this file has several conversations; mini import makes attempts of them, which can be branched off")
	}
	args := []string{"mini", "replay"}
	if it.Run != "" {
		args = append(args, notFlag(it.Run), "-i", it.ID, "--attempt", fmt.Sprint(it.Attempt))
	} else {
		args = append(args, notFlag(it.Path))
	}
	args = append(args, "--from-step", fmt.Sprint(step), "-o", "mini-runs/branch")
	for i, a := range args {
		if strings.ContainsFunc(a, unicode.IsControl) {
			return "", errors.New("a name of it has control characters, which no shell is to be given")
		}
		args[i] = quote(a)
	}
	return strings.Join(args, " "), nil
}

// quote makes a word that a shell reads as it stands.
func quote(s string) string {
	const fine = "_-./:=@%+,"
	if s != "" && !slices.ContainsFunc([]rune(s), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(fine, r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// notFlag is a path that no program takes for a flag.
func notFlag(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}
