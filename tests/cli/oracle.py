"""Runs a test by the interpreter that set-up made for oracles ($IPW_PYTHON), where there is one."""

import os
import sys


def use():
    wanted = os.environ.get("IPW_PYTHON")
    if not wanted or "IPW_AGAIN" in os.environ:
        return
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(wanted)))
    if os.path.realpath(sys.prefix) != os.path.realpath(prefix):
        os.environ["IPW_AGAIN"] = "1"
        os.execv(wanted, [wanted, *sys.argv])
