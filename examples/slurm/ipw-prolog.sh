#!/bin/sh
# Slurm prolog: saves the node's energy counters when a job starts.  ipw-epilog.sh computes the difference.
# slurm.conf:  Prolog=/etc/slurm/ipw-prolog.sh  Epilog=/etc/slurm/ipw-epilog.sh
# It never fails a job: without a monitor nothing is saved.
metrics=${IPW_METRICS_URL:-http://127.0.0.1:9860/metrics}
state=${IPW_SLURM_STATE:-/run/ipw-slurm}
[ -n "$SLURM_JOB_ID" ] && mkdir -p "$state" &&
    curl --silent --show-error --fail --max-time 5 "$metrics" >"$state/$SLURM_JOB_ID.new" &&
    mv "$state/$SLURM_JOB_ID.new" "$state/$SLURM_JOB_ID"
exit 0
