#include "support/unit.h"

#include "core/text.h"
#include "port/json_read.h"
#include "report/text/reports.h"
#include "rundir/summary.h"

/* The report on a summary that has `members` in its "ipw" object; the caller releases it. */
static void report_on(const char *members, struct text *out)
{
    struct error why = {0};
    struct text text = {0};
    struct jv *tree;
    struct summary summary;
    text_addf(&text,
              "{\"model\":\"tiny-1b\",\"dataset_name\":\"builtin\",\"profiler_config\":"
              "{\"client_id\":\"openai\",\"max_concurrency\":8,\"rate\":null},\"ipw\":{"
              "\"output_dir\":\"runs/x\",%s}}",
              members);
    assert_int_equal(jv_parse(text_get(&text), text.length, &tree, &why), ERR_OK);
    assert_int_equal(summary_from_json(tree, &summary, &why), ERR_OK);
    profile_text(&summary, false, false, out);
    summary_release(&summary);
    text_release(&text);
}

#define COUNTS "\"queries\":24,\"completed\":24,\"energy_known\":24,"
#define OWN    "\"own\":{\"cpu_s\":0.0348,\"rss_mb\":12.24,\"reads\":306}"
#define ROW(key, mean, median, min, max, std)                                                      \
    "\"" key "\":{\"avg\":" mean ",\"median\":" median ",\"min\":" min ",\"max\":" max             \
    ",\"std\":" std ",\"p95\":1,\"count\":24}"
#define ESTIMATE                                                                                   \
    "\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"estimated\",\"coverage\":1}"
#define COUNTER                                                                                    \
    "\"energy\":{\"joules\":1234.5,\"plus_minus\":12,\"method\":\"counter\","                      \
    "\"source\":\"nvml:0 energy\",\"coverage\":1,\"note\":null}"

/* clang-format off */
static const char SUMMARY[] =
    COUNTS "\"statistics\":{"
    ROW("energy_joules", "51.4", "50", "0.042", "99.996", "1.2e-5") ","
    ROW("gpu_energy_joules", "50", "49", "0.04", "98", "1") ","
    ROW("cpu_energy_joules", "1.4", "1", "0.002", "2", "null") ","
    ROW("output_tokens_per_joule", "5", "5", "5", "5", "0") ","
    ROW("latency_s", "75.3", "1.25", "0.000017", "7322", "0.25") ","
    ROW("output_tokens", "256", "255.5", "6", "12345.6", "0") ","
    ROW("requests_alive", "7.97", "8", "7.86", "8", "0.0468") "},"
    COUNTER ",\"joules\":{\"queries\":1200,\"queries_idle_share\":300,\"failed\":0,\"idle\":34.1,"
    "\"unattributed\":0.4,\"judge\":null},\"conservation_error\":2e-16,"
    "\"joules_per_output_token\":0.2,\"output_tokens_per_s\":290.94,\"accuracy\":0.75,"
    "\"correct\":18,\"incorrect\":6,\"ungraded\":0,\"accuracy_interval_95\":[0.551,0.88],"
    "\"ipj\":0.0146,\"ipj_plus_minus\":0.0018,\"ipw\":0.00231,\"ipw_plus_minus\":0.0003,"
    "\"idle\":{\"seconds\":2}," OWN;

static const char REPORT[] =
    "\n energy of 24 queries of builtin to 'tiny-1b' (openai), concurrency 8\n\n"
    "   per query               mean   median       min       max   std dev\n"
    "   energy               51.40 J  50.00 J  42.00 mJ   100.0 J  12.00 µJ\n"
    "     GPUs               50.00 J  49.00 J  40.00 mJ   98.00 J   1.000 J\n"
    "     CPUs               1.400 J  1.000 J  2.000 mJ   2.000 J         -\n"
    "   latency             1 m 15 s  1.250 s  17.00 µs  2 h 02 m  250.0 ms\n"
    "   output tokens            256    255.5         6     12346         0\n"
    "   requests in flight     7.970        8     7.860         8     0.047\n\n"
    "   energy        1.234 ± 0.012 kJ, counter (nvml:0 energy), coverage 100 %\n"
    "   attributed    1.200 kJ queries (300.0 J of it idle), 34.10 J idle between queries, 400.0 mJ "
    "unattributed\n"
    "   tokens        200.0 ± 1.9 mJ per output token, 290.9 output tokens/s\n"
    "   accuracy      75.0 %, 18 of 24 correct (95 % CI 55.1 to 88.0 %)\n"
    "   intelligence  14.6 ± 1.8 /kJ (IPJ), 2.31 ± 0.30 /kW (IPW)\n"
    "   idle power measured for 2.000 s\n"
    "   ipw itself: 34.80 ms CPU, 12.2 MB, 306 reads\n\n runs/x\n\n";
/* clang-format on */

static void a_full_report_is_formatted(void **state)
{
    (void)state;
    struct text out = {0};
    report_on(SUMMARY, &out);
    assert_string_equal(text_get(&out), REPORT);
    text_release(&out);
}

static const struct {
    const char *members, *said, *not_said;
} LINES[] = {
    /* one kind of device, one request at a time: no redundant rows */
    {"\"statistics\":{" ROW("gpu_energy_joules", "1", "1", "1", "1",
                            "0") "," ROW("requests_alive", "1", "1", "1", "1", "0") "}," OWN,
     "accuracy", "GPUs"},
    {"\"statistics\":{" ROW("energy_joules", "1", "1", "1", "1",
                            "0") "," ROW("requests_alive", "1", "1", "1", "1.0001", "0") "}," OWN,
     "1.000 J", "requests in flight"},
    /* nothing completed: no table, and no heading of it */
    {"\"statistics\":{}," OWN, "energy        unknown: no sensor; see `ipw doctor`", "per query"},
    {"\"energy\":{\"joules\":null,\"method\":null,\"note\":\"it died\"}," OWN,
     "energy        unknown: it died; see `ipw doctor`", "attributed"},
    /* an estimate is marked twice, a measurement not at all */
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"estimated\",\"source\":\"cpu_"
     "model "
     "power\",\"coverage\":0.5}," OWN,
     "energy        ~5.8 ± 3.5 J, estimated (cpu_model power), coverage 50.0 %", "null"},
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"estimated\"}," OWN,
     "~ estimated from CPU utilization, not measured", "note"},
    {COUNTER "," OWN, "1.234 ± 0.012 kJ, counter", "~"},
    /* and so is everything derived from it */
    {ESTIMATE ",\"joules\":{\"queries\":1.5,\"failed\":0.25,\"judge\":3}," OWN,
     "attributed    ~1.500 J queries, ~250.0 mJ failed attempts\n   judge         ~3.000 J, not",
     " 3.0"},
    {ESTIMATE ",\"joules_per_output_token\":0.5," OWN, "~500 ± 300 mJ per output token", " 500.0"},
    {ESTIMATE ",\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":2,\"ipw\":3," OWN,
     "~2.000 /J (IPJ), ~3.000 /W (IPW)", " 2.000"},
    {ESTIMATE ",\"statistics\":{" ROW("energy_joules", "7", "7", "7", "7", "0") "}," OWN,
     "~7.000 J", " 7.000"},
    /* missing or weak figures are reported */
    {COUNTER ",\"joules\":{\"queries\":1.5},\"completed\":60,\"energy_known\":33," OWN,
     "warning: the energy of 27 of 60 completed queries is unknown\n", "low"},
    {COUNTER ",\"joules\":{\"queries\":1.5},\"completed\":60,\"energy_known\":60," OWN,
     "attributed", "warning"},
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"counter\",\"low_confidence\":true}"
     "," OWN,
     "low confidence: shorter than ten sensor updates\n", "~"},
    /* where the joules went: nothing is shown for unknown parts */
    {COUNTER ",\"joules\":{\"queries\":1.5,\"queries_idle_share\":null,\"failed\":0,\"idle\":null,"
             "\"unattributed\":0}," OWN,
     "attributed    1.500 J queries\n", "idle"},
    {COUNTER ",\"joules\":{\"queries\":1.5,\"failed\":0.25,\"judge\":3e3}," OWN,
     "1.500 J queries, 250.0 mJ failed attempts\n   judge         3.000 kJ, not included above\n",
     "unattributed"},
    {COUNTER ",\"joules\":{\"queries\":1},\"conservation_error\":9e-7," OWN, "attributed",
     "warning"},
    {COUNTER ",\"joules\":{\"queries\":1},\"conservation_error\":0.0123," OWN,
     "warning: these differ from the energy by 1.230 %\n", "e-"},
    /* tokens: one, the other, neither */
    {"\"joules_per_output_token\":1.731e-05," OWN, "tokens        17.31 µJ per output token\n",
     "e-05"},
    {"\"output_tokens_per_s\":0.0042," OWN, "tokens        0.004 output tokens/s\n", "J per"},
    {OWN, "ipw itself", "tokens"},
    /* intelligence: the denominator grows as the value shrinks */
    {"\"accuracy\":0,\"correct\":0,\"incorrect\":4,\"ipj\":0,\"ipj_plus_minus\":0,\"ipw\":"
     "0," OWN,
     "intelligence  0 /J (IPJ), 0 /W (IPW)\n", "0.000"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":3.5,\"ipw\":null," OWN,
     "intelligence  3.500 /J (IPJ)\n", "IPW"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":null,\"ipw\":2e-6,\"ipw_plus_"
     "minus\":1e-7," OWN,
     "intelligence  2.00 ± 0.10 /MW (IPW)\n", "IPJ"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":null,\"ipw\":null," OWN,
     "4 of 4 correct", "intelligence"},
    {"\"accuracy\":0.5,\"correct\":1,\"incorrect\":1,\"ungraded\":3," OWN, ", 3 not graded\n",
     "nan"},
    /* what the grader could not read, with the bound and why */
    {"\"accuracy\":0.875,\"accuracy_at_most\":0.925,\"correct\":35,\"incorrect\":3,\"unread\":2,"
     "\"accuracy_interval_95\":[0.739,0.945],\"unread_reason\":\"no letter\"," OWN,
     "accuracy      87.5 %, 35 of 40 correct (95 % CI 73.9 to 94.5 %); 5.0 % unread: at most "
     "92.5 % (no letter)\n",
     "not graded"},
    {"\"accuracy\":0.5,\"correct\":1,\"incorrect\":1,\"unread\":0,\"accuracy_at_most\":0.5," OWN,
     "1 of 2 correct\n", "unread"},
    {"\"accuracy\":0.5,\"correct\":1,\"incorrect\":1,\"unread\":null," OWN, /* earlier version */
     "1 of 2 correct\n", "unread"},
    {"\"accuracy\":null," OWN, "accuracy      unknown: no answer was graded\n", "correct"},
    /* money, without an exponent */
    {"\"cost\":12.345,\"currency\":\"EUR\"," OWN, "cost          12.35 EUR for tokens\n",
     "electricity"},
    {"\"cost\":0.0123,\"electricity_cost\":2.02e-7,\"currency\":\"USD\"," OWN,
     "cost          0.0123 USD for tokens, 0.000000202 USD for electricity\n", "e-07"},
    {"\"currency\":\"EUR\",\"electricity_cost\":0.15," COUNTER
     ",\"operating\":{\"price_per_kwh\":0.3,\"device_price_per_hour\":2,\"device_seconds\":3600,"
     "\"cost_per_query\":0.0212,\"cost_per_query_plus_minus\":0.00048,"
     "\"cost_per_million_output_tokens\":106,"
     "\"cost_per_million_output_tokens_plus_minus\":2.4}," OWN,
     "cost          0.150 EUR for electricity, 2.00 EUR for devices\n"
     "   operating     0.02120 ± 0.00048 EUR per query, 106.0 ± 2.4 EUR per million output tokens\n"
     "                 at 0.3 EUR/kWh, 2 EUR per device hour\n"
     "                 electricity at the devices, without cooling (PUE)\n",
     "emissions"},
    {COUNTER ",\"operating\":{\"gco2_per_kwh\":400,\"gco2e_per_query\":1.6,"
             "\"gco2e_per_query_plus_minus\":0.064}," OWN,
     "   emissions     1.600 ± 0.064 gCO2e per query\n"
     "                 at 400 gCO2e/kWh\n"
     "                 electricity at the devices, without cooling (PUE); emissions "
     "location-based, of "
     "electricity only\n",
     "cost"},
    {"\"energy\":{},\"operating\":{\"gco2_per_kwh\":400}," OWN,
     "operating cost and emissions unknown: the energy is\n", "gCO2e per query"},
    {"\"cost\":0,\"currency\":\"USD\"," OWN, "cost          0.00 USD for tokens\n", "inf"},
    /* warnings */
    {COUNTER ",\"rows_left_out\":2,\"first_row_left_out\":\"line 3: not JSON\"," OWN,
     "   2 rows of the dataset skipped: line 3: not JSON\n", "failed"},
    {"\"energy\":{\"joules\":1,\"plus_minus\":1,\"method\":\"counter\",\"note\":\"look\"}," OWN,
     "   note: look\n", "idle power"},
};

static void lines_depend_on_what_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        struct text out = {0};
        report_on(LINES[i].members, &out);
        assert_contains(text_get(&out), LINES[i].said);
        if (strstr(text_get(&out), LINES[i].not_said)) {
            print_error("case %zu contains \"%s\": %s\n", i, LINES[i].not_said, text_get(&out));
            fail();
        }
        text_release(&out);
    }
}

static void failures_are_red(void **state)
{
    (void)state;
    struct summary summary;
    struct text out = {0};
    summary_init(&summary);
    summary.queries = 40;
    summary.completed = 37;
    summary.failed = 3;
    summary.failure_reason = "the answer is empty";
    profile_text(&summary, false, true, &out);
    assert_contains(text_get(&out), "\033[31m3 of 40 queries failed");
    assert_contains(text_get(&out), "the answer is empty\033[0m\n");
    text_release(&out);
}

static void the_heading_reports_how_the_run_ended(void **state)
{
    (void)state;
    static const struct {
        const char *members, *said;
    } CASES[] = {
        {"\"queries\":1,\"completed\":1,",
         " energy of 1 query of builtin to 'tiny-1b' (openai), concurrency 8\n"},
        {"\"queries\":5,\"completed\":3,\"failed\":2,",
         "   2 of 5 queries failed (40.0 %), excluded from the means: records.jsonl has the "
         "reasons\n"},
        {"\"queries\":5,\"completed\":3,\"failed\":2,\"failure_reason\":\"the answer is empty\",",
         "   2 of 5 queries failed (40.0 %), excluded from the means: the answer is empty\n"},
        {"\"queries\":5,\"completed\":5,\"cut\":2,",
         "   2 answers were truncated at the token limit\n"},
        {"\"queries\":5,\"completed\":5,\"tokens_note\":\"the server sent no "
         "usage\",\"chunks\":412,"
         "\"joules_per_chunk\":0.25,",
         "   tokens unknown for 5 of 5 queries: the server sent no usage while streaming; --param "
         "stream=false gets it, without TTFT\n"
         "   chunks        412, of one token or more each, 250.0 mJ per chunk\n"},
        {"\"queries\":5,\"completed\":5,\"interrupted\":true,",
         "concurrency 8 (interrupted: --resume continues)\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text out = {0}, members = {0};
        text_addf(&members, "%s" OWN, CASES[i].members);
        report_on(text_get(&members), &out);
        assert_contains(text_get(&out), CASES[i].said);
        text_release(&members);
        text_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_report_is_formatted),
        cmocka_unit_test(lines_depend_on_what_is_known),
        cmocka_unit_test(failures_are_red),
        cmocka_unit_test(the_heading_reports_how_the_run_ended),
    };
    return RUN_TESTS(tests);
}
