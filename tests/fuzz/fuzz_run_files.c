/* The readers of a run directory's files, each with its own file; fuzz_run has the commands that use several. */
#include "fuzz/fuzz.h"

#include "core/jv.h"
#include "core/result.h"
#include "rundir/journal.h"
#include "rundir/layers_result.h"
#include "rundir/record.h"
#include "rundir/run_list.h"
#include "rundir/samples.h"
#include "rundir/spans.h"
#include "rundir/summary.h"
#include "rundir/sweep.h"
#include "rundir/traces.h"

static enum err take_record(void *context, const struct jv *value)
{
    struct record record;
    struct evaluation evaluation;
    struct journal_line line;
    struct energy energy;
    (void)context;
    record_from_json(value, NULL, &record);
    record_evaluation(&record, &evaluation);
    (void)record_failed_joules(&record);
    journal_line_read(value, &line);
    while (journal_line_attempt(&line, &energy))
        ;
    return ERR_OK;
}

static enum err read_journal(const char *folder, struct error *why)
{
    struct run_records records = {0};
    struct run_progress progress = {0};
    struct journal_starts starts = {0};
    struct text path = {0};
    enum err err = run_records_open(folder, &records, why);
    if (!err) {
        err = run_records_read(&records, take_record, NULL, why);
        run_records_close(&records);
    }
    (void)!run_progress_read(folder, &progress, why);
    if (!journal_starts_read(folder, &starts, why))
        journal_starts_release(&starts);
    text_addf(&path, "%s/records.jsonl", folder);
    (void)journal_facts(path.bytes);
    (void)journal_first_damaged(path.bytes);
    text_release(&path);
    return err;
}

static enum err read_sweep(const char *folder, struct error *why)
{
    struct sweep sweep = {0};
    enum err err = sweep_load(folder, &sweep, why);
    for (size_t i = 0; !err && i < sweep.point_count && i < 8; i++) {
        struct text setting = {0};
        sweep_setting(&sweep, i, &setting);
        (void)sweep_figures(&sweep, i);
        text_release(&setting);
    }
    if (!err)
        sweep_release(&sweep);
    return err;
}

static enum err read_spans(const char *folder, struct error *why)
{
    struct spans spans = {0};
    enum err err = spans_load(folder, &spans, why);
    if (!err)
        (void)spans_assign_lanes(&spans, 8);
    spans_release(&spans);
    return err;
}

static enum err read_samples(const char *folder, struct error *why)
{
    struct power power = {0};
    struct summary summary;
    summary_init(&summary);
    enum err err = power_read(folder, 1, &summary, 64, &power, why);
    if (!err)
        power_release(&power);
    summary_release(&summary);
    return err;
}

static enum err read_summary(const char *folder, struct error *why)
{
    struct summary summary = {0};
    struct run_list list;
    struct text out = {0};
    struct result report = {0};
    enum err err = summary_load(folder, &summary, why);
    if (!err) {
        summary_charge(&summary);
        summary_to_json(&summary, false, &out);
        result_begin(&report, "profile");
        summary_put_report(&summary, &report);
        result_end(&report);
        summary_release(&summary);
    }
    (void)summary_is_complete(folder);
    if (!run_list_load(fuzz_folder(), &list, why))
        run_list_release(&list);
    result_release(&report);
    text_release(&out);
    return err;
}

static enum err read_traces(const char *folder, struct error *why)
{
    struct traces traces = {0};
    enum err err = traces_load(folder, &traces, why);
    if (!err)
        traces_release(&traces);
    return err;
}

static enum err read_layers(const char *folder, struct error *why)
{
    struct layers_results results = {0};
    struct result out = {0};
    enum err err = layers_results_load(folder, &results, why);
    if (!err)
        layers_results_fill(&results, true, &out);
    layers_results_release(&results);
    result_release(&out);
    return err;
}

static enum err read_estimate(const char *folder, struct error *why)
{
    struct run_estimate estimate;
    enum err err = run_estimate_load(folder, &estimate, why);
    run_estimate_release(&estimate);
    return err;
}

static const struct {
    const char *file;
    enum err (*read)(const char *folder, struct error *why);
    const char *seeds[3]; /* in tests/fixtures */
} KINDS[] = {
    {"records.jsonl",
     read_journal,
     {"runs/cpu-killed-resumed/records.jsonl", "runs/cpu-judged/records.jsonl"}},
    {"records.jsonl", read_sweep, {NULL}},
    {"spans.jsonl", read_spans, {"runs/gpu-concurrent/spans.jsonl"}},
    {"samples.csv",
     read_samples,
     {"runs/gpu-concurrent/samples.csv", "runs/cpu-judged/samples.csv"}},
    {"summary.json",
     read_summary,
     {"runs/gpu-concurrent/summary.json", "runs/cpu-judged/summary.json"}},
    {"traces.jsonl", read_traces, {"traces/new/traces.jsonl", "traces/old/traces.jsonl"}},
    {"layers.json", read_layers, {"runs/layers/layers-1m.json"}},
    {"estimate.json", read_estimate, {NULL}},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static void run(const char *bytes, size_t length)
{
    unsigned kind = fuzz_choose(&bytes, &length, KIND_COUNT);
    char name[64], folder[128];
    struct error why = {0};
    str_format(name, sizeof name, "run-%u/%s", kind, KINDS[kind].file);
    fuzz_file(name, bytes, length);
    str_format(folder, sizeof folder, "%s/run-%u", fuzz_folder(), kind);
    fuzz_check_error(KINDS[kind].read(folder, &why), &why);
}

static void seeds(void)
{
    for (int i = 0; i < KIND_COUNT; i++)
        for (size_t k = 0; KINDS[i].seeds[k]; k++) {
            char path[512];
            str_format(path, sizeof path, IPW_FIXTURES "/%s", KINDS[i].seeds[k]);
            fuzz_seed_file(i, path, 1 << 14);
        }
    fuzz_seed(
        1,
        "{\"kind\":\"run\",\"format\":1,\"run\":\"sweep\",\"start\":1,\"started_at\":1.5,"
        "\"settings\":{\"kind\":\"profile\",\"mode\":\"probe\",\"control\":true,\"clocks\":"
        "[1200,900],\"knobs\":[\"threads\"],\"points\":[[\"1\"],[\"2\"]],\"command\":[\"x\","
        "\"{threads}\"],\"options\":[],\"repeats\":2,\"seed\":1}}\n"
        "{\"kind\":\"point\",\"point\":1,\"repeat\":1,\"run\":\"points/p001_r1\",\"exit_code\":0,"
        "\"joules\":5,\"plus_minus\":1,\"seconds\":1,\"method\":\"counter\"}\n"
        "{\"kind\":\"retry\",\"point\":1,\"repeat\":1}\n{\"kind\":\"repeats\",\"repeats\":3}\n"
        "{\"kind\":\"added\",\"values\":[\"4\"]}\n{\"kind\":\"end\",\"state\":\"completed\"}\n");
    fuzz_seed(7,
              "{\"hardware_name\":\"h\",\"batch\":1,\"setting\":{\"prompt_tokens\":4},\"request\":{"
              "\"energy_j\":2,\"plus_minus\":1},\"latency_s\":0.5}");
}

const struct fuzz_target fuzz_run_files = {.run = run, .seeds = seeds, .has_values = true};
