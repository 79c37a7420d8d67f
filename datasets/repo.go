package datasets

import "strings"

// RepoOf returns the repository of an instance id of the form
// owner__name-number, as "owner/name", and "others" for other ids.
func RepoOf(id string) string {
	owner, rest, ok := strings.Cut(id, "__")
	at := strings.LastIndexByte(rest, '-')
	if !ok || owner == "" || at <= 0 {
		return "others"
	}
	return owner + "/" + rest[:at]
}
