#!/bin/bash
# What make install puts in place starts from there, and a program can be built against it.
set -euo pipefail

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR=$stage cmake --install "$IPW_BUILD" --prefix /usr >/dev/null
"$stage/usr/bin/ipw" --version

for page in "$IPW_SOURCE"/docs/man/*.[1-9]; do
    installed=$stage/usr/share/man/man${page##*.}/${page##*/}
    cmp "$page" "$installed"
done
[ "$(find "$stage/usr/share/man" -type f | wc -l)" -ge 7 ]

if command -v pkg-config >/dev/null; then
    pc=$(dirname "$(find "$stage" -name ipw.pc)")
    include=$(PKG_CONFIG_PATH=$pc pkg-config --variable=includedir ipw)
    libdir=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir ipw)
    [ -e "$include/ipw.h" ]
    [ -e "$libdir/libipw.so" ]
fi
