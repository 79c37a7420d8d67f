package local

import (
	"slices"
	"strings"
)

// IsSecret reports whether an environment variable of the host is probably a secret,
// judging by its name. Such variables are removed, so that the commands of the model
// cannot read keys. The name is a secret if it ends, in upper or lower case, with
// _KEY, _APIKEY, _ACCESS_KEY_ID, _TOKEN, _SECRET, _PASSWORD, _PASSWD, _PASSPHRASE, _PAT,
// _CREDENTIALS or
// _COOKIE, if it is one of these without the leading underscore, or if it is one of a
// few irregular names. Values are not examined, and files are not hidden.
func IsSecret(name string) bool {
	name = "_" + strings.ToUpper(name)
	if slices.Contains(irregularNames, name[1:]) {
		return true
	}
	for _, suffix := range secretSuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

var (
	secretSuffixes = []string{
		"_KEY", "_APIKEY", "_ACCESS_KEY_ID",
		"_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_PAT", "_CREDENTIALS", "_COOKIE",
	}
	irregularNames = []string{"PGPASSWORD", "MYSQL_PWD", "DOCKER_AUTH_CONFIG", "NETRC"}
)

// WithoutSecrets returns environ, as NAME=value, without variables that are secret or
// hidden. Processes that mini starts get this environment, because commands of the
// same user can read it in /proc/PID/environ.
func WithoutSecrets(environ, hidden []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return IsSecret(name) || slices.Contains(hidden, name)
	})
}

// withoutGit removes the variables of git. A program that git has started, such as a
// hook, has variables that point to its repository, and git commands of the agent would
// use that repository instead of their own.
func withoutGit(environ []string) []string {
	return slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
}
