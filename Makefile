# Entry points for developers and users; CMake does the work.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := help

PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# Evaluated for each recipe, because set-up may install ninja in between.  A build folder keeps its generator.
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja 2>/dev/null),Ninja,Unix Makefiles)

BEGAN    ?= $(shell date +%s)
BEGAN    := $(BEGAN)
export BEGAN
headline  = @printf '\n== %s (%d s)\n' "$(1)" $$(($$(date +%s) - $(BEGAN)))
# $(call configure,folder,options); $(call compile,folder,options); $(call ctest,folder,options)
# A build folder is locked, because several jobs of `make test` may compile it: the others wait.
configure = @mkdir -p $(1); said=$$(flock $(1) cmake -S . -B $(1) $(2) 2>&1) || { echo "$$said"; exit 1; }
compile   = @flock $(1) cmake --build $(1) --parallel $(JOBS) $(2)
ctest     = @$(run_ctest)
# ONLY: run the tests with this label: timed, timed_idle, untimed or exclusive.  Two ctest processes in one build
# directory would write the same files, so untimed and timed_idle tests, which run in parallel with others, have their own.
ONLY     ?=
only      = $(if $(ONLY),$(comma) those with the label $(ONLY))
folder    = $(if $(filter untimed,$(ONLY)),/ctest-untimed)$(if $(filter timed_idle,$(ONLY)),/ctest-timed-idle)
# Timed tests wait for two thirds of their time, and those that need the machine to themselves run serially anyway.
at_once   = $(if $(filter timed,$(ONLY)),$$(($(JOBS) + $(JOBS) / 2)),$(JOBS))
run_ctest = ctest --test-dir $(1)$(folder) --output-on-failure \
	--parallel $(at_once) $(2) $(if $(ONLY),-L '^$(ONLY)$$')

help: ## this list
	@echo "make TARGET, one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 20

build: ## build/ipw, without the tests
	$(call configure,build,-DIPW_TESTS=OFF)
	$(call compile,build)

# MODEL: a model that is not shipped, by its name in tools/fetch-model.
MODEL ?=
demo: ## set up, build and run `ipw demo`; MODEL=smollm2 for a larger model
	@tools/setup build
	@$(MAKE) build
	$(if $(MODEL),@tools/fetch-model $(MODEL) >/dev/null)
	build/ipw demo $(if $(MODEL),--model $(MODEL) --threads $(JOBS) --queries 100)

install: build ## install to PREFIX (/usr/local), under DESTDIR if set
	DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

# Timed tests run first, in parallel with the timed_idle ones.  CPU time that they leave idle is used to compile the
# other configurations and to run the untimed tests of all of them: tests/CMakeLists.txt defines the labels.
# Tests that need another configuration compile it themselves if it is not ready.  The gcc build runs while set-up waits
# for the network, and is configured again with what set-up installed.
test: ## set up, and every test in every configuration
	@tools/setup packages
	@tools/with-background $(MAKE) compile-gcc -- tools/setup test
	@$(MAKE) compile-gcc
	@tools/with-background $(MAKE) ONLY=untimed compile-asan compile-tsan run-gcc run-asan run-tsan run-memcheck -- \
		tools/with-background --normal-priority $(MAKE) ONLY=timed_idle run-gcc run-memcheck compile-asan run-asan compile-tsan run-tsan -- \
		$(MAKE) ONLY=timed run-gcc compile-asan run-asan compile-tsan run-tsan run-memcheck
	@$(MAKE) ONLY=exclusive run-gcc
	$(call headline,all tests passed: gcc clang+asan+ubsan tsan$$(test -e build-tsan/prefix || echo ' (SKIPPED)') valgrind)

test-gcc: test-setup compile-gcc run-gcc ## gcc: unit, conformance, command-line and structure tests
test-asan: test-setup compile-asan run-asan ## clang, warnings as errors, address and undefined-behavior sanitizers
test-tsan: test-setup compile-tsan run-tsan ## gcc with the thread sanitizer: tests of threaded code
test-memcheck: test-setup compile-gcc run-memcheck ## valgrind over the unit and conformance tests

test-setup:
	@tools/setup test

# Builds for tests only: quick to compile, but faster than unoptimized code; with asserts, and line numbers in backtraces.
QUICK = -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-O1 -g1'
CLANG = $(QUICK) -DCMAKE_C_COMPILER=clang -DIPW_WERROR=ON

# As a release, but with line numbers only as debug information: the rest takes a quarter of the compile time.
compile-gcc:
	$(call headline,gcc: build)
	$(call configure,build,-DIPW_TESTS=ON -DIPW_MEMCHECK=ON -DCMAKE_C_FLAGS_RELWITHDEBINFO='-O2 -g1 -DNDEBUG')
	$(call compile,build)

compile-asan:
	$(call headline,clang with asan+ubsan: build)
	$(call configure,build-asan,$(CLANG) -DIPW_SANITIZE=address$(comma)undefined)
	$(call compile,build-asan)

compile-tsan:
	$(call headline,tsan: build threaded tests)
	$(call configure,build-tsan,$(QUICK) -DIPW_SANITIZE=thread)
	@if tools/tsan-prefix >build-tsan/$$$$; then mv build-tsan/$$$$ build-tsan/prefix; else rm -f build-tsan/{$$$$,prefix}; fi
	$(call compile,build-tsan,--target threaded_tests)

run-gcc:
	$(call headline,gcc: all tests$(only))
	$(call ctest,build,-LE memcheck)

run-asan:
	$(call headline,clang with asan+ubsan: tests$(only))
	$(call ctest,build-asan,-LE 'structure|e2e|no_sanitizer')

run-tsan:
	$(call headline,tsan: tests of threaded code$(only))
	@test ! -e build-tsan/prefix || $$(<build-tsan/prefix) $(call run_ctest,build-tsan,-L threads)

run-memcheck: at_once = $(JOBS) # valgrind computes rather than waits
run-memcheck:
	$(call headline,valgrind: unit and conformance tests$(only))
	$(call ctest,build,-L memcheck)

bench: ## set up, and measure overhead and throughput against their bounds
	@tools/setup bench
	$(call configure,build,-DIPW_TESTS=OFF)
	@cmake --build build --parallel $(JOBS) --target benches
	@PATH=$$PATH:/usr/sbin:$(CURDIR)/.test-env/nginx/usr/sbin tools/bench build/bench

FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=

fuzz: test-setup ## fuzz each target, or FUZZ_TARGETS, for FUZZ_SECONDS (60); the corpus is kept in build-fuzz
	$(call configure,build-fuzz,$(CLANG) -DIPW_FUZZ=ON -DIPW_SANITIZE=address$(comma)undefined)
	$(call compile,build-fuzz,--target fuzz)
	@tools/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

lint: lint-format lint-tidy lint-cppcheck lint-shell lint-cross ## set up, and run all lint-* targets
	$(call headline,lint passed)

lint-setup:
	@tools/setup lint

OURS = $(shell git ls-files -co --exclude-standard '*.c' '*.h')

lint-format: lint-setup ## check formatting with clang-format
	$(call headline,clang-format)
	@clang-format-19 --dry-run -Werror $(OURS)

lint-tidy: lint-setup ## clang-tidy
	$(call headline,clang-tidy)
	$(call configure,build-clang,$(CLANG))
	$(call compile,build-clang)
	@tools/tidy build-clang --jobs $(JOBS)

lint-cppcheck: lint-setup ## cppcheck
	$(call headline,cppcheck)
	@cppcheck --quiet --std=c11 -j $(JOBS) --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 -Isrc -Iinclude -Itests src tests

SCRIPTS = $(shell git ls-files -co --exclude-standard .ci research tools tests | xargs -r grep -lE '^\#!.*(bash|/sh)')

lint-shell: lint-setup ## check the syntax of shell scripts, and shellcheck if installed
	$(call headline,shell scripts)
	@for script in $(SCRIPTS); do bash -n "$$script"; done
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); else echo "shellcheck is not installed"; fi

lint-cross: lint-setup ## the other architecture: warnings as errors, unit tests under qemu
	$(call headline,cross: build and unit tests under qemu)
	@tools/cross build-cross $(JOBS)

format: ## format all C files with clang-format
	clang-format-19 -i $(OURS)

clean: ## remove every build folder
	rm -rf build build-*

distclean: clean ## also remove what set-up installed for the tests
	rm -rf .test-env

comma := ,
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
