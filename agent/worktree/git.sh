# g is git as the other scripts use it: without programs that a repository's
# settings name, and with names quoted, so that they are ASCII.
g() {
	if $contained; then
		git -c safe.directory='*' -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=true "$@"
	else
		git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=true "$@"
	fi
}
