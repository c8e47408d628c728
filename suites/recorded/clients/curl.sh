#!/usr/bin/env bash
# curl walks through the shop: `curl.sh URL USER PASSWORD FILE [OPTION…]`.
set -euo pipefail
url=$1 user=$2 password=$3 file=$4
shift 4
jar=$(mktemp)
trap 'rm -f "$jar"' EXIT
get() { curl -fsS "${options[@]}" -b "$jar" -c "$jar" "$@"; }
hidden() { grep -o '<input type="hidden" name="[^"]*" value="[^"]*"' <<<"$1" | head -1 | sed 's/.*name="\([^"]*\)" value="\([^"]*\)"/\1=\2/'; }
options=("$@")

page=$(get "$url/login/")
get "$url/login/" --data-urlencode "$(hidden "$page")" --data-urlencode "username=$user" --data-urlencode "password=$password" -o /dev/null
page=$(get "$url/account/")
token=$(grep -o 'name="csrf-token" content="[^"]*"' <<<"$page" | sed 's/.*content="\([^"]*\)"/\1/')
made=$(get "$url/api/items/" -H "X-CSRF-Token: $token" --json '{"article":1}')
get "$url/api/items/$(sed 's/.*"id": *"*\([0-9a-f-]*\).*/\1/' <<<"$made")/" -o /dev/null
get "$url/upload/" -F "$(hidden "$page")" -F "file=@$file" -o /dev/null
get "$url/logout/" --data-urlencode "$(hidden "$page")" -o /dev/null
