# For any POSIX shell. Variables: contained, whether this is a container;
# bound, the folder that must contain the repository, or empty.
#
# g runs git on the repository itself, without the programs in its settings and
# without refs/replace.
command -v git >/dev/null 2>&1 || { echo "there is no git"; exit 97; }
# mini may be running inside a git hook. Unset the variables that point git to
# that repository. (A value of several lines can only add names to this list.)
for name in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p'); do
	[ "$name" = GIT_EXEC_PATH ] || unset "$name"
done
export GIT_NO_REPLACE_OBJECTS=1 GIT_OPTIONAL_LOCKS=0
# below DIR PATH reports whether PATH is DIR or inside it. Both are real paths.
below() {
	case $2 in "$1" | "${1%/}"/*) return 0 ;; esac
	return 1
}
if [ -n "$bound" ]; then
	# On the host the folders above belong to the user. Git splits this
	# variable at colons, so the repository that it finds is checked as well.
	bound=$(cd "$bound" && pwd -P) || { echo "the work folder is gone"; exit 98; }
	export GIT_CEILING_DIRECTORIES="${bound%/*}"
fi
# find_top sets top to the top of the working tree.
find_top() {
	top=$(g rev-parse --show-toplevel 2>/dev/null) && [ -n "$top" ] || return 1
	[ -z "$bound" ] || below "$bound" "$top"
}
if $contained; then
	# In a container the sandbox owns every repository, whoever owns its files.
	# Older versions of git have no option for this, but they do not check the
	# owner of a repository given by GIT_DIR.
	at=$(pwd)
	until [ -e "$at/.git" ] || [ -z "$at" ]; do at=${at%/*}; done
	if [ -e "$at/.git" ]; then
		export GIT_DIR="$at/.git" GIT_WORK_TREE="${at:-/}"
	fi
fi
g() {
	if $contained; then
		git -c safe.directory='*' -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"
	else
		git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"
	fi
}
# free_kib DIR prints the free KiB of its disk, or nothing if df does not
# report it.
free_kib() { df -Pk "$1" 2>/dev/null | sed -n '2s|.* \([0-9][0-9]*\)  *[0-9-][0-9]*%\{0,1\}  */.*|\1|p'; }
# make_temp KIB makes a temporary folder on the first disk with that much free
# space, and sets tmp to it. Otherwise it prints what it tried and fails with
# exit code 96. It tries the git directory, if common is set, only if the
# repository is deleted with the sandbox, because a script that is killed does
# not clean up.
make_temp() {
	need=$1 tried=
	set -- ${TMPDIR:+"$TMPDIR"} /tmp /var/tmp
	if [ -n "${common:-}" ] && { $contained || [ -n "$bound" ]; }; then
		rm -rf "$common"/mini-tmp.*
		set -- "$@" "$common"
	fi
	for place in "$@" /dev/shm; do
		free=$(free_kib "$place")
		if [ "${free:-$need}" -ge "$need" ] && tmp=$(mktemp -d "$place/mini-tmp.${tag:-}XXXXXX" 2>/dev/null); then
			return 0
		fi
		tried="$tried, $place (${free:-unknown} KiB free)"
	done
	echo "no room for a temporary folder of $need KiB; tried ${tried#, }"
	return 96
}
