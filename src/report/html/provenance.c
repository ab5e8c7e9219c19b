#define _DEFAULT_SOURCE /* realpath */
/* Provenance of a run's figures: its files as links, the command that repeats it, and predictions made before the
 * measurement. */
#include "report/html/sections.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/summary.h"

/* ---- from one folder to another ---- */

/* The absolute folder of a file, with a trailing slash; "" if it does not exist.  The caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
    char *real = realpath(folder, NULL);
    free(folder);
    if (!real)
        return xstrdup("");
    char *whole = path_join(real, ""); /* the slash at the end */
    free(real);
    return whole;
}

/* "../../a/b/", the relative path between two absolute folders. */
static void relative_path(const char *from, const char *to, struct text *out)
{
    size_t same = 0;
    for (size_t i = 0; from[i] && from[i] == to[i]; i++)
        if (from[i] == '/')
            same = i + 1;
    for (const char *at = from + same; (at = strchr(at, '/')); at++)
        text_add(out, "../");
    text_add(out, to + same);
}

/* Percent-encodes a path for a link. */
static void add_escaped(struct text *out, const char *path)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (const char *at = path; *at; at++)
        if (strchr(PLAIN, *at))
            text_add_bytes(out, at, 1);
        else
            text_addf(out, "%%%02X", (unsigned char)*at);
}

/* ---- files ---- */

struct linked_files {
    struct result *out;
    const char *path; /* from the page to the directory */
};

static void put_file(void *context, const char *name, int64_t bytes)
{
    const struct linked_files *files = context;
    struct text href = {0};
    /* "./": so that a colon in the name is not taken for a URL scheme. */
    text_add(&href, "./");
    add_escaped(&href, files->path);
    add_escaped(&href, name);
    result_group(files->out, NULL);
    result_text(files->out, "name", name);
    result_text(files->out, "href", text_get(&href));
    result_integer(files->out, "bytes", bytes);
    result_end(files->out);
    text_release(&href);
}

void files_fill(const char *directory, const char *page, struct result *out)
{
    struct text path = {0};
    char *inside = path_join(directory, ".");
    char *from = folder_of(page), *to = folder_of(inside);
    relative_path(from, to, &path);
    result_list(out, "files");
    run_dir_list(directory, RUN_DIR_DATA, put_file, &(struct linked_files){out, text_get(&path)});
    result_end(out);
    text_release(&path);
    free(inside);
    free(from);
    free(to);
}

/* ---- the command ---- */

static void add_option(struct text *out, const char *option, const char *value)
{
    text_addf(out, " %s ", option);
    text_add_shell(out, value);
}

/* Strings, numbers and flags; other values cannot be option parameters. */
static void add_params(struct text *out, const char *option, const struct json_any *params)
{
    struct text word = {0};
    JV_EACH (child, jv_first_member(params->value)) {
        text_clear(&word);
        text_addf(&word, "%s=", jv_key(child));
        if (jv_text(child))
            text_add(&word, jv_text(child));
        else if (is_known(jv_number(child)))
            text_addf(&word, "%.15g", jv_number(child));
        else if (jv_is_bool(child))
            text_add(&word, jv_bool(child, false) ? "true" : "false");
        else
            continue;
        add_option(out, option, text_get(&word));
    }
    text_release(&word);
}

/* Settings with their default value are omitted. */
static void add_settings(struct text *out, const struct summary *run)
{
    const struct {
        const char *option, *text;
        double number, otherwise;
    } ROWS[] = {
        {"--client", .text = run->config_client},
        {"--client-base-url", .text = run->config_base_url},
        {"--model", .text = run->config_model},
        {"--dataset", .text = run->config_dataset},
        {"--max-queries", NULL, integer_number(run->config_max_queries), UNKNOWN},
        {"--concurrency", NULL, integer_number(run->config_concurrency), 1},
        {"--request-rate", NULL, run->config_rate, UNKNOWN},
        {"--seed", NULL, integer_number(run->config_seed), 0},
        {"--repeat", NULL, integer_number(run->config_repeat), 1},
        {"--warmup-queries", NULL, integer_number(run->config_warmup_queries), 3},
        {"--idle", NULL, run->config_idle_s, 2},
        {"--timeout", NULL, run->config_timeout_s, 600},
        {"--retries", NULL, integer_number(run->config_retries), 3},
        {"--system", .text = run->config_system},
        {"--template", .text = run->config_template},
        {"--grader", .text = run->config_grader},
        {"--decode-weight", NULL, run->config_decode_weight, 64},
        {"--eval-client", .text = run->config_judge_client},
        {"--eval-base-url", .text = run->config_judge_base_url},
        {"--eval-model", .text = run->config_judge_model},
    };
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        char number[32];
        chars_format(number, "%.15g", ROWS[i].number);
        if (ROWS[i].text && ROWS[i].text[0])
            add_option(out, ROWS[i].option, ROWS[i].text);
        else if (!ROWS[i].text && is_known(ROWS[i].number) && ROWS[i].number != ROWS[i].otherwise)
            add_option(out, ROWS[i].option, number);
    }
}

void command_fill(const struct run_table *table, struct result *out)
{
    const struct summary *summary = &table->summary;
    struct text command = {0};
    if (!table->has_summary || !table->ours || !summary->config_client) {
        result_null(out, "command");
        return;
    }
    text_add(&command, "ipw profile");
    add_settings(&command, summary);
    add_params(&command, "--dataset-param", &summary->config_dataset_params);
    add_params(&command, "--client-param", &summary->config_client_params);
    add_params(&command, "--param", &summary->config_request_params);
    result_text(out, "command", text_get(&command));
    text_release(&command);
}

/* ---- the prediction ---- */

#define FILL_TEXT(member)        result_text(out, #member, estimate.member);
#define FILL_NUMBER(member)      result_number(out, #member, estimate.member, "");
#define FILL(type, member, path) FILL_##type(member)

void predicted_fill(const char *directory, struct result *out)
{
    struct run_estimate estimate;
    struct error why = {0};
    enum err err = run_estimate_load(directory, &estimate, &why);
    if (err == ERR_NOT_FOUND) {
        result_null(out, "predicted");
    } else {
        result_group(out, "predicted");
        if (err)
            result_text(out, "note", why.text);
        else {
            RUN_ESTIMATE(FILL)
        }
        result_end(out);
    }
    run_estimate_release(&estimate);
}
