# For any POSIX shell. Set before: contained.
#
# g is git on the repository itself: without programs that its settings name,
# and with what refs/replace holds out of play.
command -v git >/dev/null 2>&1 || { echo "there is no git"; exit 97; }
export GIT_NO_REPLACE_OBJECTS=1
unset GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_SHALLOW_FILE GIT_GRAFT_FILE
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
