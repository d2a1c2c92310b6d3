#!/usr/bin/env bash
# Lets systemd judge the unit: what it does not understand, and how much it still exposes.
# The argument is a binary to stand for the installed one.
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")"

# The most that `systemd-analyze security` may count, of 100 tenths.
exposure_max=20

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
sed "s|/usr/bin/tidegate|$binary|" tidegate.service > "$directory/tidegate.service"
complaints=$(systemd-analyze verify --man=no --recursive-errors=no "$directory/tidegate.service" 2>&1)
if [ -n "$complaints" ]; then
    printf '%s\n' "$complaints"
    exit 1
fi
systemd-analyze security --no-pager --offline=true --threshold=$exposure_max \
    "$directory/tidegate.service" | tail -n 1
