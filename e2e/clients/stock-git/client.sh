#!/bin/sh
# The contract of ../README.md with stock git; $GIT is the git to use.
#
# It never relies on anything younger than git 2.4, but for push options (2.10), which it sends if
# this git knows them.
set -eu

git=${GIT:-git}
verb=$1 dir=$2

work() {
  url=$1 name=$2 rounds=$3
  "$git" clone --quiet "$url" "$dir"
  cd "$dir"
  mkdir "$name"
  n=1
  while [ "$n" -le "$rounds" ]; do
    echo "$n" >"$name/$n.txt"
    "$git" add "$name"
    "$git" commit --quiet -m "$name $n"
    "$git" push --quiet origin "HEAD:refs/heads/$name"
    "$git" fetch --quiet origin
    n=$((n + 1))
  done
  "$git" push --quiet origin "HEAD:refs/heads/$name-gone"
  "$git" push --quiet origin ":refs/heads/$name-gone"
  "$git" tag "$name"
  "$git" push --quiet origin HEAD:refs/for/main
  if knows_options; then
    "$git" push --quiet -o "zit.claim=$name/claimed.txt" origin "refs/tags/$name"
  else
    "$git" push --quiet origin "refs/tags/$name"
  fi
}

# Whether this git can send push options. Asked for its usage, git exits with 129.
knows_options() {
  { "$git" push -h 2>&1 || true; } | grep -q push-option
}

refs() {
  cd "$dir"
  "$git" fetch --quiet --prune origin
  "$git" for-each-ref --format='%(objectname) %(refname)' refs/remotes/origin refs/tags |
    sed -e '/ refs.remotes.origin.HEAD$/d' -e 's, refs/remotes/origin/, refs/heads/,'
}

shift 2
"$verb" "$@"
