/* `ipw list runs`: the runs in a folder, from their summaries. */
#include "core/units.h"
#include "report/text/format.h"
#include "report/text/listing.h"
#include "report/text/table.h"
#include "rundir/run_index.h"
#include "rundir/run_list.h"

static void put_run(struct json *json, const struct run_list_entry *entry)
{
    const struct summary *summary = entry->has_summary ? &entry->summary : NULL;
    json_object(json, NULL);
    json_string(json, "directory", entry->name);
    json_string(json, "kind", run_kind_name(entry->kind));
    json_bool(json, "finished", entry->has_summary);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct summary_field *column = summary_index(i);
        if (column->at.type == FIELD_TEXT)
            json_string(json, column->index_name, summary_index_text(column, summary));
        else
            json_number(json, column->index_name,
                        summary ? json_field_number(&column->at, summary) : UNKNOWN);
    }
    json_object_end(json);
}

static void add_run(struct table *table, const struct run_list_entry *entry)
{
    const struct summary *summary = &entry->summary;
    char cell[FORMAT_MAX];
    table_add(table, entry->name);
    table_add(table, run_kind_name(entry->kind));
    if (!entry->has_summary) {
        table_add(table, "(unfinished)");
        for (int i = 0; i < 5; i++)
            table_add(table, "");
        return;
    }
    bool known = is_known(summary->energy.joules);
    table_add(table, summary->model ? summary->model : "");
    table_add(table, summary->dataset_name ? summary->dataset_name : "");
    if (summary->total_queries == INTEGER_UNKNOWN)
        table_add(table, "-");
    else
        table_addf(table, "%lld %s", (long long)summary->total_queries,
                   run_kind_unit(entry->kind, summary->total_queries != 1));
    table_add(table, known ? format_si(cell, summary->energy.joules, "J") : "-");
    table_add(table, is_known(summary->seconds) ? format_duration(cell, summary->seconds) : "-");
    table_add(table, is_known(summary->started_at)
                         ? format_time(cell, from_seconds(summary->started_at))
                         : "-");
}

static void write_table(const struct run_list *list, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"run", false},     {"kind", false},    {"model or command", false},
        {"dataset", false}, {"measured", true}, {"energy", true},
        {"time", true},     {"started", false},
    };
    struct table table = TABLE(COLUMNS);

    for (size_t i = 0; i < list->count; i++)
        add_run(&table, &list->entries[i]);
    table_print(&table, "  ", color, out);
}

enum err listing_runs(struct listing *listing, const char *parent, struct error *why)
{
    struct run_list list;
    struct error ignored = {0};
    enum err err = run_list_load(parent, &list, why);
    if (err)
        return err;
    /* A folder that cannot be written to can still be listed. */
    err = run_index_refresh(parent, &list, &ignored);
    listing_begin(listing, "runs", "measurements that were saved");
    for (size_t i = 0; listing->json && i < list.count; i++)
        put_run(&listing->json_writer, &list.entries[i]);
    if (!listing->json && list.count)
        write_table(&list, listing->color, &listing->text);
    if (!listing->json && !list.count)
        text_addf(&listing->text, "  (none in %s)\n", parent);
    run_list_release(&list);
    return ERR_OK;
}
