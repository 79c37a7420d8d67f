# Prints the marker on a line of its own, because git may print warnings first. Then
# it prints, each terminated by a NUL: the commit at HEAD, or the empty tree of a
# repository without a commit; the git directory; the git directory shared with
# other worktrees; the top of the working tree; the confinement folder. Then it
# prints the settings on how files become objects, in the format of git config
# -z. They are read at the start because the agent may change them later.
set -e
find_top || { echo "no repository"; exit 98; }
base=$(g rev-parse --verify --quiet 'HEAD^{commit}' || g hash-object -t tree --stdin </dev/null)
dir=$(g rev-parse --absolute-git-dir)
common=$(cd "$(g rev-parse --git-common-dir)" && pwd -P)
printf '%s\n' "$marker"
printf '%s\0' "$base" "$dir" "$common" "$top" "$bound"
g config -z --get-regexp '^(core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|bigfilethreshold|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone)|filter\..*)$' || true
