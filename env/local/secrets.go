package local

import (
	"slices"
	"strings"
)

// Secret reports whether a variable of the host looks like a secret by its
// name, and is therefore kept from commands: the model that writes them must
// not read keys. It goes by the endings _API_KEY, _APIKEY, _ACCESS_KEY,
// _ACCESS_KEY_ID, _SECRET_KEY, _PRIVATE_KEY, _AUTH_KEY, _TOKEN, _SECRET,
// _PASSWORD, _PASSWD, _PASSPHRASE, _PAT, _CREDENTIALS and _COOKIE, in upper or
// lower case, by the same words standing alone, and by a few names that follow
// no pattern. A value is never looked at, and files are not hidden.
func Secret(name string) bool {
	name = "_" + strings.ToUpper(name)
	if slices.Contains(oddNames, name[1:]) {
		return true
	}
	for _, ending := range secretEndings {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

var (
	secretEndings = []string{
		"_API_KEY", "_APIKEY", "_ACCESS_KEY", "_ACCESS_KEY_ID", "_SECRET_KEY", "_PRIVATE_KEY", "_AUTH_KEY",
		"_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_PAT", "_CREDENTIALS", "_COOKIE",
	}
	oddNames = []string{"PGPASSWORD", "MYSQL_PWD", "DOCKER_AUTH_CONFIG", "NETRC"}
)

// WithoutSecrets is an environment, as NAME=value, without the variables that
// are Secret or hidden. Processes that mini starts have it: other commands of
// the same user can read theirs, in /proc/PID/environ.
func WithoutSecrets(environ, hidden []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return Secret(name) || slices.Contains(hidden, name)
	})
}

// withoutGit leaves out what would lead git to another repository, or say how
// to treat it, than the one that commands work in: a program that git started,
// as every hook is, has its repository in such variables.
func withoutGit(environ []string) []string {
	return slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "GIT_") })
}
