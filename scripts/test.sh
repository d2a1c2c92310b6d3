#!/usr/bin/env bash
# Every test, one step after another; the last line counts. A step that cannot run here says why and
# counts as skipped. With names as arguments, only those steps: scripts/test.sh clippy unit
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

only=" $* "
target=${CARGO_TARGET_DIR:-target}
passed=0 failed=() skipped=()
SKIPPED=77

# step NAME COMMAND...: status 0 is passed, 77 skipped (the last line of the output says why).
step() {
    local name=$1 started=$SECONDS status
    shift
    [ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
    printf '\n== %s\n' "$name"
    "$@"
    status=$?
    case $status in
        0) passed=$((passed + 1)) ;;
        $SKIPPED) skipped+=("$name") ;;
        *) failed+=("$name") ;;
    esac
    printf -- '-- %s: %s (%d s)\n' "$name" "$(result $status)" $((SECONDS - started))
}

result() {
    case $1 in 0) echo passed ;; $SKIPPED) echo skipped ;; *) echo FAILED ;; esac
}

skip() {
    echo "skipped: $*"
    return $SKIPPED
}

deny() {
    local tool
    tool=$(scripts/cargo-deny.sh) || { skip "$tool"; return; }
    "$tool" --log-level warn check --hide-inclusion-graph bans licenses sources || return 1
    # The advisories are a repository on GitHub.
    if curl -fsS -m 10 -o /dev/null https://github.com/rustsec/advisory-db 2> /dev/null; then
        "$tool" --log-level warn check --hide-inclusion-graph advisories
    else
        echo "note: advisories were not looked up, github.com cannot be reached"
    fi
}

systemd_unit() {
    command -v systemd-analyze > /dev/null || { skip "systemd-analyze is not installed"; return; }
    packaging/verify.sh "$target/debug/tidegate"
}

fuzz() {
    cargo fuzz --version > /dev/null 2>&1 || { skip "cargo-fuzz is not installed"; return; }
    local name
    export RUSTC_BOOTSTRAP=1
    for name in $(cd fuzz && cargo fuzz list); do
        mkdir -p "fuzz/corpus/$name"
        cargo fuzz run "$name" "fuzz/corpus/$name" "fuzz/seeds/$name" -- \
            -max_total_time=5 -print_final_stats=0 -verbosity=0 || return 1
    done
}

unit() {
    cargo test --locked --workspace --no-fail-fast
}

# What the bench says of its own arithmetic.
bench_harness() {
    (cd bench && python3 -m unittest discover -q -s harness -t .)
}

step format cargo fmt --all --check
step clippy cargo clippy --locked --workspace --all-targets -- -D warnings
step unit unit
step deny deny
step systemd systemd_unit
step bench-harness bench_harness
export TIDEGATE_BIN=${TIDEGATE_BIN:-$(realpath "$target")/debug/tidegate}
for check in conformance/check_*.py; do
    name=${check##*/check_}
    step "conformance-${name%.py}" python3 "$check"
done
step fuzz fuzz

echo
[ ${#skipped[@]} -eq 0 ] || echo "skipped: ${skipped[*]}"
[ ${#failed[@]} -eq 0 ] || echo "FAILED: ${failed[*]}"
echo "$passed passed, ${#failed[@]} failed, ${#skipped[@]} skipped"
[ ${#failed[@]} -eq 0 ]
