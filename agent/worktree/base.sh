# Prints, each with a NUL after it: the commit at HEAD, or the empty tree of a
# repository without one; the git directory, the one it shares with other work
# trees, and the top of the files; then the settings that say how files become
# objects, as git config -z lists them. They are noted now, because later the
# agent may have changed them.
set -e
find_top || { echo "no repository"; exit 98; }
base=$(g rev-parse --verify --quiet 'HEAD^{commit}' || g hash-object -t tree --stdin </dev/null)
dir=$(g rev-parse --absolute-git-dir)
common=$(cd "$(g rev-parse --git-common-dir)" && pwd -P)
printf '%s\0' "$base" "$dir" "$common" "$top" "$bound"
g config -z --get-regexp '^(core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|bigfilethreshold|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone)|filter\..*)$' || true
