# Prints the commit at HEAD, or the empty tree of a repository without one.
g rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 1
g rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null ||
	g hash-object -t tree --stdin </dev/null 2>/dev/null
