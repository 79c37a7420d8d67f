package ask

import "strings"

// YesNo reads the answer to a question of yes or no: y and yes, n and no, in any
// case, and nothing for the usual answer. ok is false for any other text.
func YesNo(text string, usual bool) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "":
		return usual, true
	case "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}

// Marked is a question with its answers behind it, the usual one in capitals.
func Marked(question string, usual bool) string {
	if usual {
		return question + " [Y/n]"
	}
	return question + " [y/N]"
}

// Neither is what is said to an answer that YesNo does not know.
const Neither = "Please answer y or n."
