# Everything a fresh Debian or Ubuntu machine needs, with git, make and a network:
#   make demo    the gate in front of a demo origin
#   make test    every test
#   make bench   side by side with nginx and HAProxy; `make bench SCENARIOS="proxied-1k tls-1k"`
#   make docs    the generated pages of docs/
# What is missing is installed first (scripts/setup.sh); what is there is left alone.

export PATH := $(HOME)/.cargo/bin:$(PATH)
SCENARIOS ?= all

.PHONY: build release demo test bench docs setup-build setup-test setup-bench

build: setup-build
	cargo build --locked -p tidegate

release: setup-build
	cargo build --locked --release -p tidegate

demo: build
	@exec $${CARGO_TARGET_DIR:-target}/debug/tidegate demo

test: setup-test
	@scripts/test.sh

bench: setup-bench release
	bench/run $(SCENARIOS)

docs: build
	@scripts/docs.sh

setup-build setup-test setup-bench:
	@scripts/setup.sh $(@:setup-%=%)
