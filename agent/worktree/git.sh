# For any POSIX shell. Set before: contained; and bound, the folder that the
# repository has to be in, or nothing where it may be around it.
#
# g is git on the repository itself: without programs that its settings name,
# and with what refs/replace holds out of play.
command -v git >/dev/null 2>&1 || { echo "there is no git"; exit 97; }
# Whoever called mini may have been at work on a repository of their own, as
# every git hook is: no variable that leads git there may stay. (A value of
# several lines can only name more of them.)
for name in $(env | sed -n 's/^\(GIT_[A-Za-z0-9_]*\)=.*/\1/p'); do
	[ "$name" = GIT_EXEC_PATH ] || unset "$name"
done
export GIT_NO_REPLACE_OBJECTS=1 GIT_OPTIONAL_LOCKS=0
# below DIR PATH says whether a path is a folder or lies in it; both are real.
below() {
	case $2 in "$1" | "${1%/}"/*) return 0 ;; esac
	return 1
}
if [ -n "$bound" ]; then
	# On the host the folders above belong to somebody. Git splits this at
	# colons, so that what it finds is looked at too.
	bound=$(cd "$bound" && pwd -P) || { echo "the work folder is gone"; exit 98; }
	export GIT_CEILING_DIRECTORIES="${bound%/*}"
fi
# find_top sets top to where the files of the repository are.
find_top() {
	top=$(g rev-parse --show-toplevel 2>/dev/null) && [ -n "$top" ] || return 1
	[ -z "$bound" ] || below "$bound" "$top"
}
if $contained; then
	# In a container every repository is the sandbox's own, whoever owns its
	# files. Older versions of git hear that from no option, but they do not ask
	# about a repository that is named.
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
# free_kib DIR prints how many KiB are free on its disk; nothing where df does not
# say.
free_kib() { df -Pk "$1" 2>/dev/null | sed -n '2s|.* \([0-9][0-9]*\)  *[0-9-][0-9]*%\{0,1\}  */.*|\1|p'; }
# make_temp KIB makes a temporary folder on the first disk with so many KiB
# free, and sets tmp to it. Otherwise it prints what it tried, and fails with
# the exit code noRoom. The git directory, if common is set, is tried only where the
# repository goes with the sandbox: a script that is killed removes nothing.
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
