#!/usr/bin/env bash
# Writes the pages of docs/ that come from tables in the code: options, logs, metrics, the language of
# the WAF. The tests that hold these pages against their tables write them when told to.
set -euo pipefail
cd "$(dirname "$0")/.."

export UPDATE=1
cargo test --locked --quiet -p tidegate-telemetry the_reference_is_current
cargo test --locked --quiet -p tidegate-waf the_reference_is_current
cargo test --locked --quiet -p tidegate --test config
git --no-pager diff --stat -- docs
