package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxUserFile bounds the reading of /etc/passwd and /etc/group, which commands may have
// changed.
const maxUserFile = 1 << 20

// lookupIdentity returns the user and the groups of a name or number, or of USER:GROUP, from
// /etc/passwd and /etc/group; nil for "". A number needs no entry.
func lookupIdentity(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // the user of this process
	}
	user, group, hasGroup := strings.Cut(name, ":")
	entry := userEntry(user)
	uid, err := strconv.ParseUint(user, 10, 32)
	switch {
	case entry != nil:
		if uid, err = strconv.ParseUint(entry[2], 10, 32); err != nil {
			return nil, errors.New("its entry in /etc/passwd has no number")
		}
	case err != nil:
		return nil, errors.New("there is no such user in /etc/passwd")
	}
	c := &syscall.Credential{Uid: uint32(uid)}
	if entry != nil {
		if gid, err := strconv.ParseUint(entry[3], 10, 32); err == nil {
			c.Gid = uint32(gid)
		}
	}
	for _, g := range entries("/etc/group", 4) {
		gid, err := strconv.ParseUint(g[2], 10, 32)
		if err != nil {
			continue
		}
		if hasGroup && (g[0] == group || g[2] == group) {
			c.Gid = uint32(gid)
			return c, nil
		}
		if entry != nil && slices.Contains(strings.Split(g[3], ","), entry[0]) {
			c.Groups = append(c.Groups, uint32(gid))
		}
	}
	if !hasGroup {
		return c, nil
	}
	gid, err := strconv.ParseUint(group, 10, 32)
	if err != nil {
		return nil, errors.New("there is no such group in /etc/group")
	}
	c.Gid, c.Groups = uint32(gid), nil
	return c, nil
}

// WithHome returns an environment with the HOME of the user of a command; environ itself for
// a user without an entry in /etc/passwd.
func WithHome(environ []string, name string) []string {
	user, _, _ := strings.Cut(name, ":")
	if entry := userEntry(user); user != "" && entry != nil {
		return MergeEnv(environ, map[string]string{"HOME": entry[5]})
	}
	return environ
}

// userEntry returns the entry of a name or number in /etc/passwd; nil if there is none.
func userEntry(user string) []string {
	all := entries("/etc/passwd", 7)
	for _, field := range []int{0, 2} {
		if i := slices.IndexFunc(all, func(e []string) bool { return e[field] == user }); i >= 0 {
			return all[i]
		}
	}
	return nil
}

// entries returns the entries of a file in the form of /etc/passwd that have n fields.
func entries(path string, n int) (all [][]string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // of the two names; a command may have made it a pipe
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxUserFile))
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), ":"); len(fields) == n {
			all = append(all, fields)
		}
	}
	return all
}
