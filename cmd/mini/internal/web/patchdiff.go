package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/difflines"
)

// maxCompared is the number of lines of a patch up to which it is compared with another.
const maxCompared = 1500

// patchDifference compares two patches: lines that only the first has are removed, lines that only
// the second has are added. The result is in the form of a diff. Lines of context
// do not count. It is "" if the patches change the same lines, or are too long.
func patchDifference(first, second string) string {
	a, b := patchLines(first), patchLines(second)
	if slices.Equal(a, b) || len(a) > maxCompared || len(b) > maxCompared {
		return ""
	}
	return fmt.Sprintf("@@ -1,%d +1,%d @@\n", len(a), len(b)) + strings.Join(lineDifference(a, b), "\n") + "\n"
}

// patchLines returns the names of the files of a patch, and the lines that it changes.
func patchLines(patch string) (lines []string) {
	var scanner difflines.Scanner
	for patch != "" {
		line, rest, _ := strings.Cut(patch, "\n")
		class := scanner.Line(line, rest)
		if class == difflines.Add || class == difflines.Del || strings.HasPrefix(line, "diff --git ") {
			lines = append(lines, strings.TrimSuffix(line, "\r"))
		}
		patch = rest
	}
	return lines
}

// lineDifference returns the lines of a and b, as in a diff: with a sign before each.
func lineDifference(a, b []string) (lines []string) {
	common := make([][]int16, len(a)+1) // common[i][j] is the length of what a[i:] and b[j:] share
	for i := range common {
		common[i] = make([]int16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "-"+a[i])
			i++
		default:
			lines = append(lines, "+"+b[j])
			j++
		}
	}
	return lines
}
