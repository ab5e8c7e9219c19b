/* ipw doctor: which sensors work here, how accurate they are, and how to fix the others. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/common.h"
#include "core/text.h"
#include "report/doctor_report.h"
#include "runner/host_report.h"
#include "runner/check.h"
#include "sampler/session.h"

static struct measure_options measure;
static bool json;
static const char *output;

/* clang-format off */
static const struct option_row ROWS[] = {
    {.name = "json", .type = OPTION_FLAG, .target = &json, .help = "report as JSON"},
    OUTPUT_OPTION_ROW(output),
    MEASURE_OPTION_ROWS(measure, "rate"),
    {0},
};
/* clang-format on */

static int write_report(struct session *session, const struct check_row *rows)
{
    struct host_report host;
    struct text text = {0};
    host_report_fill(&session->findings, &host);
    if (json)
        doctor_json(&host, &session->findings, rows, &text);
    else
        doctor_text(&host, &session->findings, rows, !output && wants_color(STDOUT_FILENO), &text);
    int code = deliver(output, &text);
    text_release(&text);
    return code;
}

static int doctor_run(const char **words, size_t count)
{
    (void)words, (void)count;
    /* Faster than usual, to see when cached readings change. */
    if (measure.rate_hz == 0)
        measure.rate_hz = 200;
    measure.may_lack = true;
    struct session session;
    int code = open_session(&measure, &session);
    if (code)
        return code;
    struct check_row *checked = calloc(session.findings.count + 1, sizeof *checked);
    if (checked) {
        if (clear_progress())
            notify("testing the sensors under a short load ...");
        check_run(&session, checked);
        clear_progress();
        code = write_report(&session, checked);
    } else {
        code = print_error(EXIT_FAILED, "out of memory");
    }
    if (!code && measure.require_energy && !doctor_is_measured(&session.findings, checked))
        code = print_error(EXIT_NOT_MEASURED, "no sensor measures energy here");
    free(checked);
    session_close(&session);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "which energy sensors work here, how well, and how to fix the others",
    .usage = "[--json] [OPTIONS]",
    .details =
        "Probes every kind of energy sensor, tests those that open under a short CPU load, and\n"
        "reports each as ok, estimated, dead (opens, but its counter does not change), denied\n"
        "(with the command that fixes it), unsupported or absent. The test takes about a second,\n"
        "at 200 reads per second unless --sample-rate is given.",
    .rows = ROWS,
    .run = doctor_run,
};
