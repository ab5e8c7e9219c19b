/* Responses of a server of datasets: the list of splits, and pages of rows.  The HTTP client is a fake. */
#include "fuzz/fuzz.h"

#include "core/params.h"
#include "datasets/dataset.h"
#include "stubs/http_fake.h"

static const char *response;
static size_t response_length;
static bool is_fuzzed_page;

static enum err answer(const char *url, struct text *body, int *status, double *retry_after_s)
{
    (void)status, (void)retry_after_s;
    if (http_fake.count > 8)
        return ERR_LOST;
    if (!strstr(url, "/splits?") == is_fuzzed_page)
        text_add_bytes(body, response, response_length);
    else if (is_fuzzed_page)
        text_add(body, "{\"splits\":[{\"config\":\"main\",\"split\":\"train\"}]}");
    else
        text_add(body,
                 "{\"rows\":[{\"row_idx\":0,\"row\":{\"question\":\"q\"}}],\"num_rows_total\":1}");
    return ERR_OK;
}

static void run(const char *bytes, size_t length)
{
    struct params params = {0};
    struct dataset dataset;
    struct error why = {0};
    is_fuzzed_page = fuzz_choose(&bytes, &length, 2);
    response = bytes;
    response_length = length;
    http_fake = (struct http_fake){.answer = answer};
    setenv("XDG_CACHE_HOME", fuzz_folder(), 1);
    fuzz_check(!params_add(&params, "dataset=o/n,base_url=http://127.0.0.1:1,retry_delay=0,tries=1,"
                                    "refresh=true,skip_bad=true"));
    enum err err = dataset_open("hub", &(struct dataset_config){&params}, &dataset, &why);
    fuzz_check_error(err, &why);
    if (!err) {
        bool end = false;
        for (int i = 0; i < 300 && !end && (!err || err == ERR_BAD_VALUE); i++) {
            struct item item = {0};
            err = dataset_next(&dataset, &item, &end, &why);
            fuzz_check_error(err, &why);
            item_release(&item);
        }
        dataset_close(&dataset);
    }
    params_release(&params);
}

static void seeds(void)
{
    fuzz_seed(0, "{\"splits\":[{\"dataset\":\"o/n\",\"config\":\"main\",\"split\":\"train\"},"
                 "{\"config\":\"main\",\"split\":\"test\"}]}");
    fuzz_seed(
        1, "{\"features\":[{\"name\":\"question\"}],\"rows\":[{\"row_idx\":0,\"row\":{\"question\":"
           "\"q\",\"answer\":\"a\"},\"truncated_cells\":[]},{\"row_idx\":1,\"row\":{\"question\":"
           "\"r\"},\"truncated_cells\":[\"question\"]}],\"num_rows_total\":2}");
    fuzz_seed(1, "{\"error\":\"the dataset is being processed\"}");
}

static const char *const WORDS[] = {"null",           "[]",         "[1]",         "{}", "\"rows\"",
                                    "\"row\"",        "\"splits\"", "\"row_idx\"", "-1", "1e300",
                                    "num_rows_total", NULL};

const struct fuzz_target fuzz_hub = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
