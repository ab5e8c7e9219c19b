/* ipw doctor: which sensors work here, how accurate they are, and how to fix the others. */
#include <stdlib.h>

#include "cli/common.h"
#include "core/result.h"
#include "core/xalloc.h"
#include "report/html/html.h"
#include "report/plot/figure.h"
#include "report/text/reports.h"
#include "runner/check.h"
#include "runner/doctor.h"
#include "runner/host_report.h"
#include "sampler/session.h"

static struct measure_options measure;
static struct format_options format;
static const char *output;

static const struct option_row ROWS[] = {
    FORMAT_OPTION_ROWS(format),
    OUTPUT_OPTION_ROW(output),
    MEASURE_OPTION_ROWS(measure, "rate"),
    {0},
};

static int write_report(struct session *session, const struct check_row *rows)
{
    struct host_report host;
    struct result result = {0};
    host_report_fill(&session->findings, &host);
    doctor_fill(&host, &session->findings, rows, gnuplot_available, &result);
    return deliver_chosen(output, &result, &format, &DOCTOR_VIEWS);
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
    struct check_row *checked = xcalloc(session.findings.count + 1, sizeof *checked);
    if (clear_progress())
        notify("testing the sensors under a short load ...");
    check_run(&session, checked);
    clear_progress();
    code = write_report(&session, checked);
    if (!code && measure.require_energy && !check_is_measured(&session.findings, checked))
        code = print_error(EXIT_NOT_MEASURED, "no sensor measures energy here");
    free(checked);
    session_close(&session);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "which energy sensors work here, how well, and how to fix the others",
    .usage = "[--format table|json|csv|md] [OPTIONS]",
    .details =
        "Probes every kind of energy sensor, tests those that open under a short CPU load, and\n"
        "reports each as ok, estimated, dead (opens, but its counter does not change), denied\n"
        "(with the command that fixes it), unsupported or absent. The test takes about a second,\n"
        "at 200 reads per second unless --sample-rate is given.",
    .rows = ROWS,
    .run = doctor_run,
};
