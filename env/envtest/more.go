//go:build !full

package envtest

// moreGroups returns the groups that run only with the build tag full.
func moreGroups() []group { return nil }
