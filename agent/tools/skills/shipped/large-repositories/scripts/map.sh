#!/usr/bin/env bash
# Prints a map of a repository on about a screen and a half.
#   map.sh [FOLDER]
# Needs git, or find where there is no repository.
set -u
export LC_ALL=C
cd "${1:-.}" || exit 2
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  list() { git -c core.quotePath=off ls-files; }
  kind="git, $(git rev-list --count HEAD 2>/dev/null || echo 0) commits, at $(git log -1 --format='%h of %ad' --date=short 2>/dev/null || echo 'no commit')"
else
  list() { find . -type f -not -path '*/.git/*' -not -path '*/node_modules/*' | sed 's|^\./||' | head -100000; }
  kind="no git repository"
fi
names=$(mktemp) || exit 1
trap 'rm -f "$names"' EXIT
list > "$names"
code='\.(py|pyx|js|jsx|ts|tsx|go|rs|java|kt|rb|php|c|h|cc|cpp|hpp|cs|swift|scala|ex|erl|lua|pl|sh|sql)$'

echo "== $PWD: $(wc -l < "$names" | tr -d ' ') files ($kind)"
echo "== files of code, by folder (two levels)"
grep -E "$code" "$names" | awk -F/ '{k = NF > 2 ? $1 "/" $2 : (NF > 1 ? $1 : "."); n[k]++} END {for (k in n) print n[k] "\t" k}' | sort -nr | head -15
echo "== kinds"
sed -nE 's|.*/||; s|.*(\.[A-Za-z0-9]{1,8})$|\1|p' "$names" | sort | uniq -c | sort -nr | head -8 | awk '{printf "%s %s   ", $1, $2} END {print ""}'
echo "== longest files of code"
grep -E "$code" "$names" | grep -vE '(^|/)(vendor|third_party|node_modules|dist|build)/|\.min\.' | head -20000 | tr '\n' '\0' | xargs -0 wc -l 2>/dev/null | grep -vE ' total$' | sort -nr | head -8
echo "== explains, builds, begins"
grep -iE '^[^/]*$' "$names" | grep -iE '^(readme|contributing|architecture|changelog|makefile|justfile|setup\.|pyproject|package\.json|go\.mod|cargo\.toml|pom\.xml|build\.gradle|gemfile|composer\.json|tox\.ini|noxfile|dockerfile|cmakelists)' | tr '\n' ' '
echo
grep -E '(^|/)(__main__|main|cli|app|index|manage|server)\.[a-z]+$|^cmd/[^/]+/main\.go$' "$names" | grep -vE '(^|/)(tests?|docs?|examples?|vendor|node_modules)/' | awk '{print gsub("/", "/"), $0}' | sort -n | cut -d' ' -f2- | head -10
echo "== tests"
grep -E '(^|/)(tests?|spec|__tests__)/|(^|/)test_[^/]*\.py$|_test\.(go|py)$|\.(test|spec)\.[jt]sx?$' "$names" | awk -F/ '{k = NF > 2 ? $1 "/" $2 : (NF > 1 ? $1 : "."); n[k]++} END {for (k in n) print n[k] "\t" k}' | sort -nr | head -6
for f in tox.ini pytest.ini setup.cfg pyproject.toml package.json Makefile; do
  [ -f "$f" ] && grep -nE '^\[tool\.pytest|^\[pytest|^\[testenv|^testpaths|^commands|"test[^"]*" *:|^(test|check)[A-Za-z_-]*:' "$f" | head -4 | cut -c1-120 | sed "s|^|$f:|"
done
if git rev-parse HEAD >/dev/null 2>&1; then
  echo "== changed most in the last 300 commits"
  git log -300 --format= --name-only 2>/dev/null | grep -E "$code" | sort | uniq -c | sort -nr | head -10
fi
exit 0
