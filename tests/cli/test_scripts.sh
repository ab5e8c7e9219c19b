#!/bin/bash
# The shell scripts define each function once: bash would use the last definition, also where an earlier one was meant.
set -euo pipefail

status=0
while IFS= read -r script; do
    twice=$(sed -nE 's/^([a-z_]+)\(\) [{(].*/\1/p' "$script" | sort | uniq -d)
    if [ -n "$twice" ]; then
        echo "${script#"$IPW_SOURCE"/} defines more than once: $twice"
        status=1
    fi
done < <(grep -rlE '^#!/bin/(ba)?sh' "$IPW_SOURCE/tools" "$IPW_SOURCE/tests/cli" "$IPW_SOURCE/tests/fixtures")
exit $status
