#!/bin/bash
# What make install puts in place starts from there.
set -euo pipefail

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR=$stage cmake --install "$IPW_BUILD" --prefix /usr >/dev/null
"$stage/usr/bin/ipw" --version
