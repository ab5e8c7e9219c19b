#!/bin/sh
# Slurm epilog: writes the energy of a job as one line of JSON.
#   node_joules    of the whole node while the job ran: the job's own energy if it was exclusive
#   active_joules  attributed to the processes of the job's cgroup, without idle power; null without cgroups
# Unknown figures are null.  The script never fails a job.
metrics=${IPW_METRICS_URL:-http://127.0.0.1:9860/metrics}
state=${IPW_SLURM_STATE:-/run/ipw-slurm}
log=${IPW_SLURM_LOG:-/var/log/ipw-jobs.jsonl}
start=$state/$SLURM_JOB_ID
[ -n "$SLURM_JOB_ID" ] && [ -f "$start" ] || exit 0
curl --silent --show-error --fail --max-time 5 "$metrics" >"$start.end" || : >"$start.end"
awk -v job="$SLURM_JOB_ID" -v user="${SLURM_JOB_USER:-}" -v node="$(hostname)" '
    # Reads both files; if the monitor was restarted in between, its counters were reset, and figures are unknown.
    FNR == 1 { file++ }
    /^#/ { next }
    /^ipw_monitor_start_time_seconds / { began[file] = $NF }
    /^ipw_node_joules_total[{ ]/ { node_joules[file] += $NF; node_known[file] = 1 }
    /^ipw_cgroup_(cpu|gpu)_joules_total\{/ && $0 ~ "job_" job "[^0-9]" { active[file] += $NF; active_known = 1 }
    function figure(known, value) { return known ? sprintf("%.3f", value) : "null" }
    END {
        same = began[1] != "" && began[1] == began[2]
        printf "{\"job_id\": \"%s\", \"user\": \"%s\", \"node\": \"%s\", ", job, user, node
        printf "\"node_joules\": %s, ", figure(same && node_known[1] && node_known[2], node_joules[2] - node_joules[1])
        printf "\"active_joules\": %s}\n", figure(same && active_known, active[2] - active[1])
    }' "$start" "$start.end" >>"$log"
rm -f "$start" "$start.end"
exit 0
