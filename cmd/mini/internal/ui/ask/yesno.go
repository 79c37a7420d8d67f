package ask

import "strings"

// ParseYesNo parses y, yes, ok, n or no, ignoring case and white space at both ends; an empty text is
// the default. ok is false for any other text.
func ParseYesNo(text string, defaultYes bool) (yes, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "":
		return defaultYes, true
	case "y", "yes", "ok":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}

// YesNoPrompt appends the possible answers to a question, the default in capitals.
func YesNoPrompt(question string, defaultYes bool) string {
	if defaultYes {
		return question + " [Y/n]"
	}
	return question + " [y/N]"
}

// YesNoHint is the reply to an answer that ParseYesNo rejects.
const YesNoHint = "Please answer y or n."
