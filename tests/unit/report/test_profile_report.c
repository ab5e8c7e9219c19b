#include "support/unit.h"

#include "core/text.h"
#include "port/json_read.h"
#include "report/text/profile_report.h"
#include "runner/profile/profile.h"

/* The report on a summary that has `members` in its "ipw" object; the caller releases it. */
static void report_on(const char *members, struct profile_result result, struct text *out)
{
    struct error why = {0};
    text_addf(&result.summary,
              "{\"model\":\"tiny-1b\",\"dataset_name\":\"builtin\",\"profiler_config\":"
              "{\"client_id\":\"openai\",\"max_concurrency\":8,\"rate\":null},\"ipw\":{%s}}",
              members);
    str_copy(result.directory, sizeof result.directory, "runs/x");
    enum err err = profile_text(&result, false, out, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(err, ERR_OK);
    text_release(&result.summary);
}

#define OWN "\"own\":{\"cpu_s\":0.0348,\"rss_mb\":12.24,\"reads\":306}"
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
    "\"statistics\":{"
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
    "\n energy of 24 queries of builtin to 'tiny-1b' (openai), 8 at a time\n\n"
    "   of a query              mean   median       min       max   std dev\n"
    "   energy               51.40 J  50.00 J  42.00 mJ   100.0 J  12.00 µJ\n"
    "     GPUs               50.00 J  49.00 J  40.00 mJ   98.00 J   1.000 J\n"
    "     CPUs               1.400 J  1.000 J  2.000 mJ   2.000 J         -\n"
    "   latency             1 m 15 s  1.250 s  17.00 µs  2 h 02 m  250.0 ms\n"
    "   output tokens            256    255.5         6     12346         0\n"
    "   requests in flight     7.970        8     7.860         8     0.047\n\n"
    "   energy        1.234 ± 0.012 kJ, counter (nvml:0 energy), 100 % of the time covered\n"
    "   of which      1.200 kJ queries (300.0 J of it idle), 34.10 J between them, 400.0 mJ "
    "unattributed\n"
    "   tokens        200.0 mJ an output token, 290.9 output tokens a second\n"
    "   accuracy      75.0 %, 18 of 24 right (95 % interval 55.1 to 88.0 %)\n"
    "   intelligence  14.6 ± 1.8 per kJ (IPJ), 2.31 ± 0.30 per kW (IPW)\n"
    "   idle baseline measured for 2.000 s\n"
    "   ipw itself: 34.80 ms CPU, 12.2 MB, 306 reads\n\n runs/x\n\n";
/* clang-format on */

static void a_whole_report(void **state)
{
    (void)state;
    struct text out = {0};
    report_on(SUMMARY, (struct profile_result){.queries = 24, .completed = 24}, &out);
    assert_string_equal(text_get(&out), REPORT);
    text_release(&out);
}

static const struct {
    const char *members, *said, *not_said;
} LINES[] = {
    /* one kind of device, one request at a time: no rows that repeat others */
    {"\"statistics\":{" ROW("gpu_energy_joules", "1", "1", "1", "1",
                            "0") "," ROW("requests_alive", "1", "1", "1", "1", "0") "}," OWN,
     "accuracy", "GPUs"},
    {"\"statistics\":{" ROW("energy_joules", "1", "1", "1", "1",
                            "0") "," ROW("requests_alive", "1", "1", "1", "1.0001", "0") "}," OWN,
     "1.000 J", "requests in flight"},
    /* nothing completed: no table, and no heading of one */
    {"\"statistics\":{}," OWN, "energy        unknown: no sensor; see `ipw doctor`", "of a query"},
    {"\"energy\":{\"joules\":null,\"method\":null,\"note\":\"it died\"}," OWN,
     "energy        unknown: it died; see `ipw doctor`", "of which"},
    /* an estimate is marked twice, a measurement not at all */
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"estimated\",\"source\":\"cpu_"
     "model "
     "power\",\"coverage\":0.5}," OWN,
     "energy        ~5.8 ± 3.5 J, estimated (cpu_model power), 50.0 % of the time", "null"},
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"estimated\"}," OWN,
     "~ estimated from CPU use, not measured", "note"},
    {COUNTER "," OWN, "1.234 ± 0.012 kJ, counter", "~"},
    /* and so is all that is made of it */
    {ESTIMATE ",\"joules\":{\"queries\":1.5,\"failed\":0.25,\"judge\":3}," OWN,
     "of which      ~1.500 J queries, ~250.0 mJ failed tries\n   judge         ~3.000 J, not",
     " 3.0"},
    {ESTIMATE ",\"joules_per_output_token\":0.5," OWN, "~500.0 mJ an output token", " 500.0"},
    {ESTIMATE ",\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":2,\"ipw\":3," OWN,
     "~2.000 per J (IPJ), ~3.000 per W (IPW)", " 2.000"},
    {ESTIMATE ",\"statistics\":{" ROW("energy_joules", "7", "7", "7", "7", "0") "}," OWN,
     "~7.000 J", " 7.000"},
    /* what is missing or weak is told */
    {COUNTER ",\"joules\":{\"queries\":1.5},\"completed\":60,\"energy_known\":33," OWN,
     "warning: the energy of 27 of 60 completed queries is unknown\n", "low"},
    {COUNTER ",\"joules\":{\"queries\":1.5},\"completed\":60,\"energy_known\":60," OWN, "of which",
     "warning"},
    {"\"energy\":{\"joules\":5.8,\"plus_minus\":3.5,\"method\":\"counter\",\"low_confidence\":true}"
     "," OWN,
     "low confidence: shorter than ten sensor updates\n", "~"},
    /* where the joules went: nothing is shown for what was not */
    {COUNTER ",\"joules\":{\"queries\":1.5,\"queries_idle_share\":null,\"failed\":0,\"idle\":null,"
             "\"unattributed\":0}," OWN,
     "of which      1.500 J queries\n", "idle"},
    {COUNTER ",\"joules\":{\"queries\":1.5,\"failed\":0.25,\"judge\":3e3}," OWN,
     "1.500 J queries, 250.0 mJ failed tries\n   judge         3.000 kJ, not in the above\n",
     "unattributed"},
    {COUNTER ",\"joules\":{\"queries\":1},\"conservation_error\":9e-7," OWN, "of which", "warning"},
    {COUNTER ",\"joules\":{\"queries\":1},\"conservation_error\":0.0123," OWN,
     "warning: these miss the energy by 1.230 %\n", "e-"},
    /* tokens: one, the other, neither */
    {"\"joules_per_output_token\":1.731e-05," OWN, "tokens        17.31 µJ an output token\n",
     "e-05"},
    {"\"output_tokens_per_s\":0.0042," OWN, "tokens        0.004 output tokens a second\n", "J an"},
    {OWN, "ipw itself", "tokens"},
    /* intelligence: the denominator grows as the figure shrinks */
    {"\"accuracy\":0,\"correct\":0,\"incorrect\":4,\"ipj\":0,\"ipj_plus_minus\":0,\"ipw\":"
     "0," OWN,
     "intelligence  0 per J (IPJ), 0 per W (IPW)\n", "0.000"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":3.5,\"ipw\":null," OWN,
     "intelligence  3.500 per J (IPJ)\n", "IPW"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":null,\"ipw\":2e-6,\"ipw_plus_"
     "minus\":1e-7," OWN,
     "intelligence  2.00 ± 0.10 per MW (IPW)\n", "IPJ"},
    {"\"accuracy\":1,\"correct\":4,\"incorrect\":0,\"ipj\":null,\"ipw\":null," OWN, "4 of 4 right",
     "intelligence"},
    {"\"accuracy\":0.5,\"correct\":1,\"incorrect\":1,\"ungraded\":3," OWN, ", 3 not graded\n",
     "nan"},
    {"\"accuracy\":null," OWN, "accuracy      unknown: no answer was graded\n", "right"},
    /* money, without an exponent */
    {"\"cost\":12.345,\"currency\":\"EUR\"," OWN, "cost          12.35 EUR for tokens\n",
     "electricity"},
    {"\"cost\":0.0123,\"electricity_cost\":2.02e-7,\"currency\":\"USD\"," OWN,
     "cost          0.0123 USD for tokens, 0.000000202 USD for electricity\n", "e-07"},
    {"\"cost\":0,\"currency\":\"USD\"," OWN, "cost          0.00 USD for tokens\n", "inf"},
    /* what a reader must know */
    {COUNTER ",\"rows_left_out\":2,\"first_row_left_out\":\"line 3: not JSON\"," OWN,
     "   2 rows of the dataset left out: line 3: not JSON\n", "failed"},
    {"\"energy\":{\"joules\":1,\"plus_minus\":1,\"method\":\"counter\",\"note\":\"look\"}," OWN,
     "   note: look\n", "idle baseline"},
};

static void what_is_said_and_what_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        struct text out = {0};
        report_on(LINES[i].members, (struct profile_result){.queries = 4, .completed = 4}, &out);
        assert_contains(text_get(&out), LINES[i].said);
        if (strstr(text_get(&out), LINES[i].not_said)) {
            print_error("case %zu says \"%s\": %s\n", i, LINES[i].not_said, text_get(&out));
            fail();
        }
        text_release(&out);
    }
}

static void the_heading_says_how_it_ended(void **state)
{
    (void)state;
    static const struct {
        struct profile_result result;
        const char *said;
    } CASES[] = {
        {{.queries = 1, .completed = 1},
         " energy of 1 query of builtin to 'tiny-1b' (openai), 8 at"},
        {{.queries = 5, .completed = 3, .failed = 2},
         "   2 failed: records.jsonl has the reasons\n"},
        {{.queries = 5, .completed = 5, .signal = 2},
         "8 at a time (interrupted: --resume continues)\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text out = {0};
        report_on(OWN, CASES[i].result, &out);
        assert_contains(text_get(&out), CASES[i].said);
        text_release(&out);
    }
}

static void a_summary_that_is_no_json_is_an_error(void **state)
{
    (void)state;
    struct profile_result result = {0};
    struct text out = {0};
    struct error why = {0};
    text_add(&result.summary, "{\"ipw\": ");
    assert_int_not_equal(profile_text(&result, false, &out, &why), ERR_OK);
    assert_int_not_equal(strlen(why.text), 0);
    text_release(&result.summary);
    text_release(&out);
}

int main(void)
{
    struct error why;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_report),
        cmocka_unit_test(what_is_said_and_what_is_not),
        cmocka_unit_test(the_heading_says_how_it_ended),
        cmocka_unit_test(a_summary_that_is_no_json_is_an_error),
    };
    if (jv_available(&why) != ERR_OK) /* a build without a JSON reader has no profiles either */
        return 77;
    return RUN_TESTS_WITH(jv_available, tests);
}
