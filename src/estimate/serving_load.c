/* Requests of a load: drawn from distributions with a seed, or read from a trace.  Arrivals are stored in units of the
 * mean inter-arrival time, so that one load is used for every rate: points of a curve differ only in their load, not by
 * chance. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/measured_csv.h"
#include "estimate/serving.h"

enum { RATES_MAX = 1000, TOKENS_MAX = 10000000 };
enum { STREAM_ARRIVALS = 1, STREAM_INPUT, STREAM_OUTPUT };
#define RATE_MAX 1e9

/* ---- options ---- */

enum err serving_lengths_parse(const char *option, const char *words, struct serving_lengths *out,
                               struct error *why)
{
    char low[32];
    uint64_t first, last;
    const char *dots = strstr(words, "..");
    size_t length = dots ? (size_t)(dots - words) : strlen(words);
    bool is_short = length < sizeof low;
    chars_format(low, "%.*s", (int)(is_short ? length : 0), words);
    if (!is_short || parse_u64(low, &first) != ERR_OK ||
        parse_u64(dots ? dots + 2 : low, &last) != ERR_OK || first < 1 || last < first ||
        last > TOKENS_MAX)
        return err_set(why, ERR_USAGE,
                       "--%s with --serve takes one length (512) or a range (100..500, uniform), "
                       "from 1 to %d; not '%.60s'",
                       option, TOKENS_MAX, words);
    *out = (struct serving_lengths){(int64_t)first, (int64_t)last};
    return ERR_OK;
}

static bool add_rate(double rate, double *rates, size_t *count)
{
    if (!(rate > 0) || rate > RATE_MAX || *count == RATES_MAX)
        return false;
    rates[(*count)++] = rate;
    return true;
}

/* "2", "1:10:0.5". */
static bool add_rates(char *item, double *rates, size_t *count)
{
    double parts[3];
    int given = 0;
    for (char *part = item, *end; part && given < 3; part = end, given++) {
        end = strchr(part, ':');
        if (end)
            *end++ = '\0';
        if (parse_double(part, &parts[given]) != ERR_OK || (end && given == 2))
            return false;
    }
    if (given == 1)
        return add_rate(parts[0], rates, count);
    if (given != 3 || !(parts[2] > 0) || !(parts[0] <= parts[1]))
        return false;
    double steps = floor((parts[1] - parts[0]) / parts[2] + 1e-9);
    bool is_valid = steps < RATES_MAX;
    for (unsigned i = 0; is_valid && i <= steps; i++)
        is_valid = add_rate(parts[0] + i * parts[2], rates, count);
    return is_valid;
}

enum err serving_rates_parse(const char *words, double **rates, size_t *count, struct error *why)
{
    *count = 0;
    *rates = xcalloc(RATES_MAX, sizeof **rates);
    for (const char *rest = words; rest;) {
        char item[96];
        if (str_next_item(&rest, item, sizeof item) && add_rates(item, *rates, count))
            continue;
        free(*rates);
        *rates = NULL;
        return err_set(why, ERR_USAGE,
                       "--request-rate takes requests per second above 0: 2, 1,2,4 or "
                       "LOW:HIGH:STEP, at most %d; not '%.60s'",
                       RATES_MAX, words);
    }
    qsort(*rates, *count, sizeof **rates, compare_doubles);
    return ERR_OK;
}

/* ---- loads ---- */

static void measure(struct serving_load *load)
{
    double input = 0, output = 0;
    load->longest = load->longest_input = 0;
    for (size_t i = 0; i < load->count; i++) {
        const struct serving_request *one = &load->items[i];
        int64_t all = one->input + one->output;
        input += (double)one->input;
        output += (double)one->output;
        load->longest = all > load->longest ? all : load->longest;
        load->longest_input = one->input > load->longest_input ? one->input : load->longest_input;
    }
    load->mean_input = input / (double)load->count;
    load->mean_output = output / (double)load->count;
}

void serving_load_draw(size_t count, struct serving_lengths input, struct serving_lengths output,
                       uint64_t seed, struct serving_load *out)
{
    struct random arrivals = random_from(seed, STREAM_ARRIVALS);
    struct random inputs = random_from(seed, STREAM_INPUT);
    struct random outputs = random_from(seed, STREAM_OUTPUT);
    double now = 0;
    *out = (struct serving_load){.count = count, .rate = UNKNOWN};
    out->items = xcalloc(count, sizeof *out->items);
    for (size_t i = 0; i < count; i++) {
        out->items[i] =
            (struct serving_request){now, random_between(&inputs, input.low, input.high),
                                     random_between(&outputs, output.low, output.high)};
        now -= log(random_unit(&arrivals));
    }
    measure(out);
}

static int64_t read_tokens(struct measured_csv *csv, const char *column)
{
    double tokens = measured_csv_number(csv, column);
    if (!csv->err && !(tokens >= 1 && tokens <= TOKENS_MAX && tokens == floor(tokens)))
        measured_csv_fail(csv, column, "must be an integer, 1 or more");
    return csv->err ? 0 : (int64_t)tokens;
}

static void read_rows(struct measured_csv *csv, struct serving_load *out)
{
    double first = 0, before = 0;
    for (csv->row = 0; !csv->err && csv->row < csv->grid.rows; csv->row++) {
        double now = measured_csv_number(csv, "arrival_s");
        if (!csv->err && !is_known(now))
            measured_csv_fail(csv, "arrival_s", "missing");
        else if (csv->row && now < before)
            measured_csv_fail(csv, "arrival_s", "before the previous row");
        first = csv->row ? first : now;
        before = now;
        out->items[out->count++] = (struct serving_request){
            now - first, read_tokens(csv, "input_tokens"), read_tokens(csv, "output_tokens")};
    }
}

/* Converts to units of the mean inter-arrival time; a single request, or simultaneous ones, have no rate. */
static void normalize(struct serving_load *load)
{
    double span = load->items[load->count - 1].arrival;
    load->rate = span > 0 ? (double)(load->count - 1) / span : UNKNOWN;
    for (size_t i = 0; span > 0 && i < load->count; i++)
        load->items[i].arrival *= load->rate;
    measure(load);
}

enum err serving_load_read(const char *path, struct serving_load *out, struct error *why)
{
    static const char *const COLUMNS[] = {"arrival_s", "input_tokens", "output_tokens"};
    struct measured_csv csv;
    *out = (struct serving_load){0};
    measured_csv_open(&csv, path, why);
    for (size_t i = 0; !csv.err && i < COUNT_OF(COLUMNS); i++)
        if (!measured_csv_has(&csv, COLUMNS[i]))
            csv.err = err_set(why, ERR_BAD_VALUE,
                              "%s: missing column %s: a trace has arrival_s, input_tokens and "
                              "output_tokens",
                              path, COLUMNS[i]);
    if (!csv.err && !csv.grid.rows)
        csv.err = err_set(why, ERR_BAD_VALUE, "%s: no requests", path);
    if (!csv.err) {
        out->items = xcalloc(csv.grid.rows, sizeof *out->items);
        read_rows(&csv, out);
    }
    enum err err = csv.err;
    if (err)
        serving_load_release(out);
    else
        normalize(out);
    measured_csv_close(&csv);
    return err;
}

void serving_load_release(struct serving_load *load)
{
    free(load->items);
    *load = (struct serving_load){0};
}
