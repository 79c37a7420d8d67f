# Removes everything from a repository that is neither HEAD, its history, the
# tags in it, nor staged. Prints what it removed and what is left, as
# name=value lines. HEAD, the index and the files do not change.
set -e
find_top || {
	[ ! -e "${GIT_DIR:-}" ] || { echo "git cannot read the repository"; exit 4; }
	echo "no repository"
	exit 98
}
dir=$(g rev-parse --absolute-git-dir)
common=$(cd "$(g rev-parse --git-common-dir)" && pwd -P)
objects=$common/objects
if [ -n "$bound" ]; then
	# A linked worktree, a submodule, or links in place of git's files: the
	# changes would affect another repository.
	for at in "$dir" "$common"; do
		below "$bound" "$at" || { echo "its git directory $at is not in the work folder"; exit 4; }
	done
	for at in "$dir" "$common"; do
		links=$(cd "$at" && find . -path ./modules -prune -o -path ./hooks -prune -o -type l -print) || exit 4
		[ -z "$links" ] || { echo "its git directory has links, which may lead to another's: $links"; exit 4; }
	done
fi
cd "$top"

# Required space in KiB: lists of objects, and a pack beside the existing ones.
stats=$(g count-objects -v 2>/dev/null) || stats=
number() { printf '%s\n' "$stats" | sed -n "s/^$1: //p"; }
lists=$((4096 + ($(number count) + $(number in-pack) + 0) * 2 / 5))
packs=$(($(number size) + $(number size-pack) + 0))
make_temp "$lists"
export TMPDIR="$tmp"
finish() {
	status=$?
	trap - EXIT
	wait
	if [ $status -ne 0 ]; then
		dd if="$tmp/err" bs=2048 count=1 2>/dev/null
		! grep -q 'No space left' "$tmp/err" || echo "it needs $lists KiB in $tmp and up to $packs KiB in $objects"
	fi
	cd / && rm -rf "$tmp"
	exit $status
}
trap finish EXIT
exec 2>"$tmp/err"
refuse() { echo "$1" >&2; exit 4; }
# only A B prints the lines of A that B lacks. Both are sorted without
# duplicates. (Not every busybox has comm.)
merge=-m
sort -m </dev/null >/dev/null 2>&1 || merge=
only() { sort $merge "$1" "$2" "$2" | uniq -u; }
count() { wc -l <"$1" | tr -d ' '; }

# Missing objects of a partial clone would be fetched from the remote, which is
# removed.
if g config --get-regexp '^(extensions\.partialclone|remote\..*\.promisor)$' >/dev/null || ls "$objects"/pack/*.promisor >/dev/null 2>&1; then
	refuse "it is a partial clone, which needs its remote"
fi
[ -z "$(g config --get extensions.refstorage || true)" ] || refuse "its refs are stored in a way that mini does not know"

# New files get the same owner as the existing ones.
set -- $(ls -ldn "$common")
owner=$3:$4
own() { [ ! -e "$1" ] || chown "$owner" "$1" 2>/dev/null || :; }

# 1. Remove grafts, replacements and caches, which change the visible history.
rm -f "$common/info/grafts" "$objects"/pack/multi-pack-index*
rm -rf "$objects"/info/commit-graph* "$common/refs/replace"
head=$(g rev-parse --verify --quiet 'HEAD^{commit}' || true)
branch=$(g symbolic-ref --quiet HEAD || true)
# Remember where HEAD was detached, which only git's reflog records.
detached=
[ -n "$branch" ] || detached=$(g branch --no-color | sed -n -e 's/^\* (HEAD detached at \(.*\))$/\1/p' -e 's/^\* (HEAD detached from \(.*\))$/\1/p')

# 2. Remove states, logs and lists that name other commits.
for at in "$dir" "$common"; do
	for name in FETCH_HEAD ORIG_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE \
		CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD SQUASH_MSG COMMIT_EDITMSG \
		rebase-apply rebase-merge sequencer logs rr-cache lost-found remotes gc.log gc.pid; do
		rm -rf "$at/$name"
	done
	rm -rf "$at"/BISECT_* "$at"/*.bundle "$at"/branches/*
done
for work in "$common"/worktrees/*; do
	[ "$work" = "$dir" ] || rm -rf "$work"
done
rmdir "$common/worktrees" 2>/dev/null || :
if [ "$dir" != "$common" ]; then
	# This is a linked worktree. Reset the main one.
	rm -f "$common/index"
	case $(cat "$common/HEAD") in ref:*) ;; *) echo "$head" >"$common/HEAD" ;; esac
fi

# 3. Refs. Rewrite packed refs, because git finds nothing in a file that is not
# sorted.
pair='%(objectname) %(refname)'
g for-each-ref --format='%(refname)' >"$tmp/list"
sort "$tmp/list" >"$tmp/refs"
{
	[ -z "$branch" ] || g for-each-ref --format="$pair" "$branch"
	[ -z "$head" ] || g for-each-ref --merged="$head" --format="$pair" refs/tags
} >"$tmp/packed"
cut -d' ' -f2- "$tmp/packed" | sort >"$tmp/kept"
only "$tmp/refs" "$tmp/kept" >"$tmp/gone"
if [ -f "$common/packed-refs" ]; then
	sed -n 's/^[0-9a-f][0-9a-f]* //p' "$common/packed-refs" | sort -u >"$tmp/list"
	only "$tmp/list" "$tmp/kept" >"$tmp/strange"
	[ ! -s "$tmp/strange" ] || cat "$tmp/packed" >"$common/packed-refs"
fi
g for-each-ref --format='%(refname)' >"$tmp/list"
sort "$tmp/list" >"$tmp/refs"
only "$tmp/refs" "$tmp/kept" >"$tmp/left"
if [ -s "$tmp/left" ]; then
	while IFS= read -r ref; do
		printf 'option no-deref\ndelete %s\n' "$ref"
	done <"$tmp/left" >"$tmp/deletions"
	g update-ref --stdin <"$tmp/deletions"
fi
[ ! -f "$common/packed-refs" ] || own "$common/packed-refs"
# Remove broken refs, which git ignores.
for at in "$dir/refs" "$common/refs"; do
	[ -d "$at" ] || continue
	find "$at" ! -type d >"$tmp/loose"
	while IFS= read -r ref; do
		grep -Fxq -- "refs${ref#"$at"}" "$tmp/kept" || rm -f "$ref"
	done <"$tmp/loose"
	find "$at" -depth -type d ! -path "$at" ! -path "$at/heads" ! -path "$at/tags" -exec rmdir {} \; 2>/dev/null || :
done

# 4. Remove Git LFS files, except those that the index or HEAD points to.
if [ -d "$common/lfs" ]; then
	for at in "$common/lfs"/*; do
		[ "$at" = "$common/lfs/objects" ] || rm -rf "$at"
	done
	pointer='^oid sha256:[0-9a-f]*$'
	g grep -ahe "$pointer" --cached >"$tmp/list" || [ $? -eq 1 ]
	[ -z "$head" ] || g grep -ahe "$pointer" "$head" >>"$tmp/list" || [ $? -eq 1 ]
	sed 's/^oid sha256://' "$tmp/list" | sort -u >"$tmp/pointers"
	find "$common/lfs/objects" ! -type d 2>/dev/null >"$tmp/list" || :
	while IFS= read -r file; do
		grep -Fxq -- "${file##*/}" "$tmp/pointers" || rm -f "$file"
	done <"$tmp/list"
fi

# 5. Remove remotes and the branches' settings.
g config --local --name-only --get-regexp '^(remote|branch)\..*\.' >"$tmp/keys" || :
while IFS= read -r key; do
	echo "${key%.*}"
done <"$tmp/keys" | sort -u >"$tmp/sections"
while IFS= read -r section; do
	g config --local --remove-section "$section"
done <"$tmp/sections"
own "$common/config"

# 6. Objects. tips are the objects to keep, and reach is everything reachable
# from them. Lists are passed in files, because a shell does not see errors
# inside a pipe.
{
	[ -z "$head" ] || echo "$head"
	cut -d' ' -f1 "$tmp/packed"
} >"$tmp/tips"
: >"$tmp/history"
history() {
	[ -z "$head" ] || g rev-list "$head" >"$tmp/list"
	[ -z "$head" ] || sort "$tmp/list" >"$tmp/history"
}
if [ -f "$common/shallow" ]; then
	history
	sort -u "$common/shallow" | sort - "$tmp/history" | uniq -d >"$tmp/shallow"
	cat "$tmp/shallow" >"$common/shallow"
	[ -s "$common/shallow" ] || rm -f "$common/shallow"
fi
if [ -n "$detached" ]; then
	# Keep one entry, so that git status still reports where HEAD was detached.
	from=$(g rev-parse --verify --quiet "$detached^{commit}" || echo "$head")
	history
	grep -qx "$from" "$tmp/history" || from=$head
	case $(g rev-parse --verify --quiet "$detached^{commit}" || true) in "$from") ;; *) detached=$head ;; esac
	mkdir -p "$dir/logs"
	printf '%s %s mini <mini> 1 +0000\tcheckout: moving from %s to %s\n' "$from" "$from" "$from" "$detached" >"$dir/logs/HEAD"
	own "$dir/logs"
	own "$dir/logs/HEAD"
fi
# list_store lists the objects in the store, in pack order, which is several
# times faster than in name order.
list_store() {
	g cat-file --batch-all-objects --unordered --batch-check='%(objectname) %(objecttype)' >"$tmp/found"
	sort -u "$tmp/found" >"$tmp/store"
	cut -d' ' -f1 "$tmp/store" >"$tmp/there"
}
# count_stray sets stray to the number of objects in the store outside reach.
count_stray() {
	only "$tmp/there" "$tmp/reach" >"$tmp/stray"
	stray=$(count "$tmp/stray")
}
list_store &
listing=$!
g rev-list --objects --indexed-objects --stdin <"$tmp/tips" >"$tmp/list"
cut -d' ' -f1 "$tmp/list" >"$tmp/wanted"
sort -u "$tmp/wanted" >"$tmp/reach"
wait "$listing"
count_stray
before=$stray
method=none
rm -rf "$objects"/tmp_* "$objects"/incoming-* "$objects"/pack/tmp_*
if [ "$stray" -gt 0 ] && [ ! -e "$objects/info/alternates" ]; then
	# Loose objects are the cheapest to remove.
	(cd "$objects" && find . -path './[0-9a-f][0-9a-f]/*' -type f) | sed 's|[./]||g' | sort >"$tmp/loose"
	sort $merge "$tmp/loose" "$tmp/stray" | uniq -d | sed 's|^..|&/|' >"$tmp/paths"
	method=loose
	if [ -s "$tmp/paths" ]; then
		(cd "$objects" && xargs rm -f <"$tmp/paths")
		list_store
		count_stray
	fi
fi
if [ "$stray" -gt 0 ] || [ -e "$objects/info/alternates" ] || [ -e "$objects/info/http-alternates" ]; then
	# Write a pack with the objects to keep beside the existing packs and
	# replace these. Existing deltas are reused and no new ones are searched.
	method=repacked
	rm -rf "$objects/mini"
	free=$(free_kib "$objects")
	if [ "${free:-$packs}" -lt "$packs" ]; then
		echo "no room for a pack of up to $packs KiB in $objects, which has $free KiB free" >&2
		exit 96
	fi
	mkdir -p "$objects/mini" "$objects/pack"
	[ ! -s "$tmp/reach" ] || g -c pack.packSizeLimit=0 -c pack.writeReverseIndex=false pack-objects \
		--window=0 --delta-base-offset -q "$objects/mini/pack" <"$tmp/wanted" >/dev/null
	for folder in "$objects"/[0-9a-f][0-9a-f]; do rm -rf "$folder"; done
	find "$objects/pack" ! -type d -exec rm -f {} +
	for made in "$objects"/mini/*; do
		[ -e "$made" ] || continue
		own "$made"
		mv "$made" "$objects/pack/"
	done
	rmdir "$objects/mini"
	rm -f "$objects/info/alternates" "$objects/info/http-alternates"
	list_store
	count_stray
fi

# Update the lists of refs and packs for dumb HTTP servers.
if [ -f "$common/info/refs" ] || [ -f "$objects/info/packs" ]; then
	rm -f "$common/info/refs" "$objects/info/packs"
	g update-server-info
	own "$common/info/refs"
	own "$objects/info/packs"
fi

# 7. Ask git again what is left.
history
sed -n 's/ commit$//p' "$tmp/store" >"$tmp/commits"
only "$tmp/commits" "$tmp/history" >"$tmp/strangers"
only "$tmp/reach" "$tmp/there" >"$tmp/lost"
[ ! -s "$tmp/lost" ] || refuse "objects that belong to HEAD are missing"
[ "$(g rev-parse --verify --quiet 'HEAD^{commit}' || true)" = "$head" ] || refuse "HEAD is not what it was"
g for-each-ref --format='%(refname)' >"$tmp/list"
sort "$tmp/list" >"$tmp/refs"
only "$tmp/refs" "$tmp/kept" >"$tmp/refsleft"
g remote >"$tmp/remotes"
submodules=0
[ ! -d "$common/modules" ] || submodules=$(find "$common/modules" -type f -name HEAD ! -path '*/logs/*' | wc -l | tr -d ' ')
cat <<END
head=$head
method=$method
refs_removed=$(count "$tmp/gone")
objects_removed=$((before - stray))
objects=$(count "$tmp/store")
commits=$(count "$tmp/commits")
tags=$(g for-each-ref --format='%(refname)' refs/tags | wc -l | tr -d ' ')
stray_commits=$(count "$tmp/strangers")
stray_objects=$stray
stray_refs=$(count "$tmp/refsleft")
remotes=$(count "$tmp/remotes")
submodules=$submodules
END
