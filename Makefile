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
configure = @mkdir -p $(1); said=$$(cmake -S . -B $(1) $(2) 2>&1) || { echo "$$said"; exit 1; }
compile   = @cmake --build $(1) --parallel $(JOBS) $(2)
# How many tests run at once follows from the CPUs in test_slots.json (tests/CMakeLists.txt), not from --parallel.
ctest     = @ctest --test-dir $(1) --resource-spec-file $(CURDIR)/build/test_slots.json --output-on-failure \
	--parallel 100 $(2)

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

check: export IPW_TEST_PRIORITY = normal
check: compile-gcc ## the loop of a developer: build, tests in C, structure checks, a smoke test of each command
	$(call headline,unit$(comma) conformance$(comma) structure and smoke tests)
	$(call ctest,build,-L 'unit|conform|structure|smoke')

# One ctest runs the tests of all build folders, so that those that compute fill the time that others wait.
test: test-builds ## set up, and every test in every configuration
	$(call headline,every test: gcc clang+asan+ubsan tsan valgrind)
	@mkdir -p build-all
	@printf 'subdirs("$(CURDIR)/%s")\n' build build-asan build-tsan >build-all/CTestTestfile.cmake
	$(call ctest,build-all)
	$(call headline,all tests passed)

test-gcc: test-setup compile-gcc ## gcc, and valgrind
	$(call ctest,build)

test-asan: test-setup compile-asan ## clang, warnings as errors, address and undefined-behavior sanitizers
	$(call ctest,build-asan)

test-tsan: test-setup compile-tsan ## gcc with the thread sanitizer: tests of threaded code
	$(call ctest,build-tsan)

test-setup:
	@tools/setup test

# What only running tests need is downloaded while the compilers run; what it said is shown after them.  Configuring
# again finds the Python that it installed.
test-builds:
	@tools/setup packages
	$(call headline,downloads for the tests$(comma) and meanwhile:)
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	tools/setup downloads >"$$said" 2>&1 & downloads=$$!; \
	built=yes; $(MAKE) compile-gcc compile-asan compile-tsan || built=no; \
	downloaded=yes; wait $$downloads || downloaded=no; cat "$$said"; \
	[ $$built$$downloaded = yesyes ]
	$(call configure,build)
	$(call configure,build-asan)

# Builds for tests only: quick to compile, but faster than unoptimized code; with asserts, and line numbers in backtraces.
QUICK = -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS='-O1 -g1'
CLANG = $(QUICK) -DCMAKE_C_COMPILER=clang -DIPW_WERROR=ON

# As a release, but with line numbers only as debug information: the rest takes a quarter of the compile time.
compile-gcc:
	$(call headline,gcc: build)
	$(call configure,build,-DIPW_TESTS=ON -DIPW_VALGRIND=ON -DCMAKE_C_FLAGS_RELWITHDEBINFO='-O2 -g1 -DNDEBUG')
	$(call compile,build)

compile-asan:
	$(call headline,clang with asan+ubsan: build)
	$(call configure,build-asan,$(CLANG) -DIPW_SANITIZE=address$(comma)undefined)
	$(call compile,build-asan)

compile-tsan:
	$(call headline,tsan: build threaded tests)
	$(call configure,build-tsan,$(QUICK) -DIPW_SANITIZE=thread)
	$(call compile,build-tsan,--target tests_in_c)

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
