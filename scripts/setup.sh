#!/usr/bin/env bash
# Installs what is missing to build, to test or to measure (the first argument: build, test, bench).
# What is there is left as it is; run it as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
rust=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)

say() { printf 'setup: %s\n' "$*"; }
has() { command -v "$1" > /dev/null || [ -x "/usr/sbin/$1" ]; }

# Packages of Debian and Ubuntu, each behind the command that tells whether it is there.
missing=() optional=()
need() { has "$1" || missing+=("$2"); }
want() { has "$1" || optional+=("$2"); }

need cc build-essential
need curl curl
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
if [ "$purpose" != build ]; then
    need python3 python3
    python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)
    need openssl openssl
    # Tests that lack one of these are skipped, and say so.
    want nginx nginx-light
    want h2load nghttp2-client
    has valkey-server || want redis-server redis-server
    want go golang-go
fi
if [ "$purpose" = test ]; then
    want chromium chromium
    want node nodejs
    want npm npm
    want git git
fi
if [ "$purpose" = bench ]; then
    want haproxy haproxy
    want wrk wrk
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Servers are wanted as programs, not as services that take port 80 of this machine.
apt_install() {
    local policy=/usr/sbin/policy-rc.d made=
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" > /dev/null
        as_root chmod 755 "$policy"
        made=yes
    fi
    local result=0
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends "$@" > /dev/null || result=$?
    [ -z "$made" ] || as_root rm -f "$policy"
    return $result
}

if [ ${#missing[@]} -gt 0 ] || [ ${#optional[@]} -gt 0 ]; then
    if ! has apt-get || { [ "$(id -u)" != 0 ] && ! has sudo; }; then
        [ ${#optional[@]} -eq 0 ] || say "not installed, so tests will be skipped: ${optional[*]}"
        if [ ${#missing[@]} -gt 0 ]; then
            say "please install these first (no apt-get here, or neither root nor sudo): ${missing[*]}"
            exit 1
        fi
    else
        say "installing packages: ${missing[*]-} ${optional[*]-}"
        as_root apt-get update -qq
        [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
        for package in ${optional[@]+"${optional[@]}"}; do
            apt_install "$package" || say "$package cannot be installed: what needs it will be skipped"
        done
    fi
fi

export PATH="$HOME/.cargo/bin:$PATH"

# A compiler that is new enough serves, wherever it comes from.
new_enough() {
    has cargo && has rustc || return 1
    local version
    version=$(rustc --version 2> /dev/null | cut -d' ' -f2) || return 1
    [ "$(printf '%s\n%s\n' "$rust" "$version" | sort -V | head -n1)" = "$rust" ]
}
if ! new_enough; then
    if ! has rustup; then
        say "installing rustup into ~/.cargo"
        curl --proto '=https' --tlsv1.2 -fsS https://static.rust-lang.org/rustup/rustup-init.sh |
            sh -s -- -y -q --no-modify-path --profile minimal --default-toolchain none
    fi
    say "installing Rust $rust"
    rustup toolchain install -q "$rust" --profile minimal --component clippy --component rustfmt
fi
