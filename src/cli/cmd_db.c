/* ipw db: a database of runs that a team shares.
 *
 *   $ ipw db init postgres://lab/energy
 *   $ ipw db push --db postgres://lab/energy runs/
 *   $ ipw db list --db postgres://lab/energy --model llama3.2:1b --since 7d */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/common.h"
#include "core/clock.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "db/db.h"
#include "report/text/format.h"
#include "report/text/reports.h"
#include "rundir/summary.h"

struct db_options {
    const char *address;
    struct db_filter filter;
    const char *since, *older_than, *runs, *output_dir, *output;
    struct format_options format;
    bool roles, quiet, dry_run, all;
};

static struct db_options args = {.filter = {.since = UNKNOWN, .before = UNKNOWN}};

/* ---- the database ---- */

static int find_address(bool needed)
{
    if (!args.address)
        args.address = str_or_null(getenv("IPW_DB"));
    if (!args.address && needed)
        return print_error(EXIT_USAGE, "missing database: use --db URL or set IPW_DB");
    return check_db(args.address, false);
}

static int open_database(struct db **db, bool writing)
{
    struct error why = {0};
    return db_open(db, args.address, writing, &why) ? print_failure(&why) : 0;
}

/* ---- times ---- */

/* "90d", "12h", "2w": an age; "2026-11-30": the start of that day, UTC. */
static bool read_time(const char *text, double *out)
{
    static const struct {
        char letter;
        double seconds;
    } UNITS[] = {{'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    struct tm day = {0};
    const char *end = strptime(text, "%Y-%m-%d", &day);
    char *unit;
    if (end && !*end) {
        *out = (double)timegm(&day);
        return true;
    }
    double number = strtod(text, &unit);
    if (unit == text || !(number >= 0) || strlen(unit) != 1)
        return false;
    for (size_t i = 0; i < COUNT_OF(UNITS); i++)
        if (*unit == UNITS[i].letter) {
            *out = (double)clock_wall() * 1e-9 - number * UNITS[i].seconds;
            return true;
        }
    return false;
}

static int read_times(void)
{
    if (args.since && !read_time(args.since, &args.filter.since))
        return print_error(EXIT_USAGE,
                           "--since: use an age such as 7d or 12h, or a date such as 2026-11-30");
    if (args.older_than && !read_time(args.older_than, &args.filter.before))
        return print_error(EXIT_USAGE,
                           "--older-than: use an age such as 90d, or a date such as 2026-11-30");
    return 0;
}

/* ---- init ---- */

static int init_main(const char **words, size_t count)
{
    struct error why = {0};
    int from = 0, to = 0;
    if (count > 1 || (count && args.address))
        return print_error(EXIT_USAGE, "more than one database");
    if (count)
        args.address = words[0];
    int code = find_address(true);
    if (code)
        return code;
    if (db_init(args.address, args.roles, &from, &to, &why))
        return print_failure(&why);
    if (!args.quiet && !from)
        notify("ipw db init: created the tables (schema version %d)\n", to);
    else if (!args.quiet)
        notify(from == to ? "ipw db init: the tables are up to date (schema version %d)\n"
                          : "ipw db init: migrated the tables to schema version %d\n",
               to);
    return EXIT_DONE;
}

/* ---- push ---- */

struct push_counts {
    size_t pushed, failed;
};

static void show_pushed(void *context, const char *directory, const struct db_pushed *pushed,
                        const struct error *why)
{
    static const char *const OUTCOMES[] = {"pushed", "unchanged", "replaced"};
    struct push_counts *counts = context;
    char bytes[FORMAT_MAX];
    if (why) {
        counts->failed++;
        print_error(EXIT_FAILED, "%s: %s", directory, why->text);
        return;
    }
    counts->pushed++;
    if (!args.quiet && pushed->outcome == DB_SAME)
        notify("%s %s  %s\n", pushed->id, OUTCOMES[pushed->outcome], directory);
    else if (!args.quiet)
        notify("%s %s  %s: %llu queries, %s\n", pushed->id, OUTCOMES[pushed->outcome], directory,
               (unsigned long long)pushed->queries, format_bytes(bytes, (double)pushed->bytes));
}

static int push_runs(const char **runs, size_t count, struct push_counts *counts)
{
    struct db *db = NULL;
    int code = open_database(&db, true);
    for (size_t i = 0; !code && i < count; i++) {
        struct error why = {0};
        struct db_pushed pushed;
        enum err err = db_push(db, runs[i], &pushed, &why);
        show_pushed(counts, runs[i], &pushed, err ? &why : NULL);
    }
    db_free(db);
    return code;
}

static void push_pending(struct push_counts *counts)
{
    const char *folder = args.runs ? args.runs : "runs";
    db_push_pending(folder, args.address, show_pushed, counts);
    if (!counts->pushed && !counts->failed && !args.quiet)
        notify("ipw db push: no run in %s is pending\n", folder);
}

static int push_main(const char **words, size_t count)
{
    struct push_counts counts = {0};
    int code = find_address(count > 0);
    if (!code && count)
        code = push_runs(words, count, &counts);
    else if (!code)
        push_pending(&counts);
    return code ? code : counts.failed ? EXIT_FAILED : EXIT_DONE;
}

/* ---- list ---- */

static enum err put_run(void *context, const struct db_run *run)
{
    db_run_put(run, context);
    return ERR_OK;
}

static int list_main(const char **words, size_t count)
{
    struct error why = {0};
    struct result result = {0};
    struct db *db = NULL;
    int code = find_address(true);
    if (!code && count > 1)
        code = print_error(EXIT_USAGE, "more than one run");
    if (!code)
        code = read_times();
    if (!code)
        code = open_database(&db, false);
    if (code)
        return code;
    args.filter.run = count ? words[0] : NULL;
    if (!args.filter.limit)
        args.filter.limit = 50;
    result_begin_list(&result, "runs");
    if (db_list(db, &args.filter, put_run, &result, &why))
        code = print_failure(&why);
    result_end(&result);
    result_table(&result, "", NULL);
    if (!code)
        code = deliver_printed(args.output, &result, format_chosen(&args.format, args.output),
                               &STORED_RUNS_VIEWS);
    result_release(&result);
    db_free(db);
    return code;
}

/* ---- selecting runs ---- */

struct run_ids {
    struct run_id {
        char id[RUN_ID_MAX], name[160];
        double began_at;
    } *items;
    size_t count, capacity;
    bool with_attempts; /* include attempts, which are otherwise pulled with their sweep */
};

static enum err take_id(void *context, const struct db_run *run)
{
    struct run_ids *ids = context;
    if (run->sweep && !ids->with_attempts)
        return ERR_OK;
    struct run_id *item = XADD(ids->items, ids->count, ids->capacity);
    chars_copy(item->id, run->id);
    chars_copy(item->name, run->name);
    item->began_at = run->began_at;
    return ERR_OK;
}

/* The runs named by the words, each of which must match, or all that match the filters. */
static int find_runs(struct db *db, const char **words, size_t count, struct run_ids *out)
{
    struct error why = {0};
    for (size_t i = 0; i < count || (!count && !i); i++) {
        size_t before = out->count;
        args.filter.run = count ? words[i] : NULL;
        if (db_list(db, &args.filter, take_id, out, &why))
            return print_failure(&why);
        if (out->count == before && count)
            return print_error(EXIT_FAILED, "%s has no run '%s'", db_shown(db),
                               plain_text(words[i]).text);
    }
    return 0;
}

/* ---- pull ---- */

static int pull_main(const char **words, size_t count)
{
    struct error why = {0};
    struct run_ids ids = {0};
    struct db *db = NULL;
    const char *parent = args.output_dir ? args.output_dir : "runs";
    const struct db_filter *filter = &args.filter;
    int code = find_address(true);
    ids.with_attempts = count > 0;
    if (!code)
        code = read_times();
    if (!code && !count && !args.all && !filter->kind && !filter->model && !filter->host &&
        !filter->hardware && !filter->dataset && !args.since && !filter->limit)
        code = usage_error("missing run: name runs, select them with filters, or use --all");
    if (!code)
        code = open_database(&db, false);
    if (!code)
        code = find_runs(db, words, count, &ids);
    for (size_t i = 0; !code && i < ids.count; i++) {
        struct db_pulled pulled = {0};
        if (db_pull(db, ids.items[i].id, parent, &pulled, &why))
            code = print_error(EXIT_FAILED, "%s: %s", ids.items[i].id, why.text);
        else if (!args.quiet)
            notify("%s %s  %s\n", ids.items[i].id, pulled.was_there ? "unchanged" : "pulled",
                   pulled.directory);
        free(pulled.directory);
    }
    free(ids.items);
    db_free(db);
    return code;
}

/* ---- prune ---- */

static int prune_main(const char **words, size_t count)
{
    struct error why = {0};
    struct run_ids ids = {.with_attempts = true};
    struct db *db = NULL;
    char time[FORMAT_MAX];
    int code = find_address(true);
    if (!code && !count && !args.older_than)
        code = usage_error("missing --older-than AGE");
    if (!code)
        code = read_times();
    if (!code)
        code = open_database(&db, !args.dry_run);
    if (!code)
        code = find_runs(db, words, count, &ids);
    for (size_t i = 0; !code && i < ids.count; i++) {
        enum err err = args.dry_run ? ERR_OK : db_delete(db, ids.items[i].id, &why);
        if (err && err != ERR_NOT_FOUND) /* another process has deleted it */
            code = print_error(EXIT_FAILED, "%s: %s", ids.items[i].id, why.text);
        else if (!args.quiet)
            notify("%s %s  %.16s %s\n", ids.items[i].id, args.dry_run ? "would delete" : "deleted",
                   clock_text(time, (nanos)(ids.items[i].began_at * 1e9)), ids.items[i].name);
    }
    if (!code && !args.quiet)
        notify("ipw db prune: %s %zu run%s\n", args.dry_run ? "would delete" : "deleted", ids.count,
               str_plural(ids.count));
    free(ids.items);
    db_free(db);
    return code;
}

/* ---- options ---- */

#define ADDRESS_ROW DB_OPTION_ROW(args.address, "the database (default: IPW_DB)")
#define QUIET_ROW   FLAG_ROW("quiet", args.quiet, "report failures only", .letter = 'q')
/* clang-format off */
#define FILTER_ROWS                                                                                \
    TEXT_ROW("kind", args.filter.kind, "KIND",                                                     \
             "runs of profile, run, layers, sweep, agent or proxy"),                               \
    TEXT_ROW("model", args.filter.model, "NAME", "runs of this model"),                            \
    TEXT_ROW("dataset", args.filter.dataset, "NAME", "runs on this dataset"),                      \
    TEXT_ROW("host", args.filter.host, "NAME", "runs on this host"),                               \
    TEXT_ROW("hardware", args.filter.hardware, "LABEL", "runs on this hardware"),                  \
    TEXT_ROW("since", args.since, "AGE", "runs that began since: 7d, 12h, 2026-11-30"),            \
    COUNT_ROW("limit", args.filter.limit, "N", "only the N newest", .min = 1, .max = 1e9)
/* clang-format on */

static const struct option_row INIT_ROWS[] = {
    ADDRESS_ROW,
    FLAG_ROW("roles", args.roles, "also create the roles ipw_reader and ipw_writer (PostgreSQL)"),
    QUIET_ROW,
    {0},
};
static const struct option_row PUSH_ROWS[] = {
    ADDRESS_ROW,
    TEXT_ROW("runs", args.runs, "DIR", "where to look for pending runs (default: runs)"),
    QUIET_ROW,
    {0},
};
static const struct option_row LIST_ROWS[] = {
    ADDRESS_ROW, FILTER_ROWS, FORMAT_OPTION_ROWS(args.format), OUTPUT_OPTION_ROW(args.output), {0},
};
static const struct option_row PULL_ROWS[] = {
    ADDRESS_ROW,
    FILTER_ROWS,
    FLAG_ROW("all", args.all, "all runs"),
    TEXT_ROW("output-dir", args.output_dir, "DIR", "parent of the run directories (default: runs)"),
    QUIET_ROW,
    {0},
};
static const struct option_row PRUNE_ROWS[] = {
    ADDRESS_ROW,
    TEXT_ROW("older-than", args.older_than, "AGE", "runs that began before: 90d, 12w, 2026-01-31"),
    FILTER_ROWS,
    FLAG_ROW("dry-run", args.dry_run, "list them, delete nothing"),
    QUIET_ROW,
    {0},
};

static const struct command command_db_init = {
    .name = "db init",
    .summary = "create or migrate the tables",
    .usage = "[URL] [--roles]",
    .details = "Creates the tables, or migrates those of an earlier version; no effect if they "
               "are\nup to date. In PostgreSQL they are in the schema ipw.",
    .rows = INIT_ROWS,
    .words = WORDS_ANY,
    .run = init_main,
};

static const struct command command_db_push = {
    .name = "db push",
    .summary = "push runs",
    .usage = "[RUN...] [--db URL]",
    .details =
        "Pushes run directories, each in one transaction. A run that is already in the\ndatabase "
        "is skipped, or replaced if it has changed. A folder means all runs in it.\nWithout RUN, "
        "pushes the pending runs of runs/, which another command's --db could not push.",
    .rows = PUSH_ROWS,
    .words = WORDS_ANY,
    .takes_runs = true,
    .takes_sweeps = true,
    .run = push_main,
};

static const struct command command_db_list = {
    .name = "db list",
    .summary = "list runs",
    .usage = "[RUN] [--db URL] [OPTIONS]",
    .details = "Lists runs, newest first; at most 50 unless --limit is given. RUN is an id, the "
               "prefix\nof an id, or a name.",
    .rows = LIST_ROWS,
    .words = WORDS_ANY,
    .run = list_main,
};

static const struct command command_db_pull = {
    .name = "db pull",
    .summary = "pull runs into run directories",
    .usage = "RUN... [--db URL] [OPTIONS]",
    .details = "Writes run directories with the files that were pushed, byte for byte. RUN is "
               "an\nid, the prefix of an id, or a name.",
    .rows = PULL_ROWS,
    .words = WORDS_ANY,
    .run = pull_main,
};

static const struct command command_db_prune = {
    .name = "db prune",
    .summary = "delete old runs",
    .usage = "--older-than AGE [--db URL] [OPTIONS]",
    .details = "Deletes runs from the database; run directories are kept.",
    .rows = PRUNE_ROWS,
    .words = WORDS_ANY,
    .run = prune_main,
};

static int db_main(const char **words, size_t count)
{
    (void)count;
    return print_error(EXIT_USAGE, "unknown command 'db %s': init, push, list, pull, prune",
                       strstr(words[0], "://") ? "URL" : plain_text(words[0]).text);
}

static const struct command *const TOOLS[] = {&command_db_init, &command_db_push,  &command_db_list,
                                              &command_db_pull, &command_db_prune, NULL};
static const struct option_row NO_ROWS[] = {{0}};

const struct command command_db = {
    .name = "db",
    .summary = "share runs in a database: PostgreSQL or SQLite",
    .usage = "init|push|list|pull|prune [OPTIONS]",
    .details =
        "  init    create or migrate the tables\n"
        "  push    push runs\n"
        "  list    list runs\n"
        "  pull    pull runs into run directories\n"
        "  prune   delete old runs\n"
        "\n"
        "The database is --db URL or IPW_DB: postgres://[USER@]HOST[:PORT]/NAME or\n"
        "sqlite:///PATH, or sqlite://PATH for a relative path. Keep passwords in ~/.pgpass or\n"
        "PGPASSWORD. Each command has its own --help.",
    .rows = NO_ROWS,
    .words = WORDS_ANY,
    .required = "missing command",
    .tools = TOOLS,
    .run = db_main,
};
