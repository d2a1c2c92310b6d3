#!/usr/bin/env bash
# Prints the path of cargo-deny. Where it is missing, it is built into target/tools if CI is set (that
# takes minutes of CPU); otherwise this prints why there is none, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
root=${CARGO_TARGET_DIR:-target}/tools
if command -v cargo-deny; then
    exit
fi
if [ ! -x "$root/bin/cargo-deny" ]; then
    if [ -z "${CI:-}" ]; then
        echo "cargo-deny is not installed (cargo install --locked cargo-deny; CI does it by itself)"
        exit 1
    fi
    if ! cargo install --quiet --locked --root "$root" "cargo-deny@$version" >&2; then
        echo "cargo-deny cannot be built"
        exit 1
    fi
fi
realpath "$root/bin/cargo-deny"
