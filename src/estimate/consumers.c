/* The consumers of energy of an estimate: subgraphs grouped by the name of their layer, and sorted. */
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/estimate_result.h"

enum { NAME_MAX_CHARS = 36, NAME_SIZE = NAME_MAX_CHARS + 8 };

/* Above this number subgraphs are not grouped: the search is quadratic. */
enum { GROUPED_MAX = 5000 };

struct consumer {
    char name[NAME_SIZE];
    const struct subgraph_total *first;
    struct estimate_joules joules;
    double latency_s;
    size_t count;  /* number of subgraphs */
    bool is_mixed; /* they have different bounds */
};

static int by_joules(const void *left, const void *right)
{
    const struct consumer *a = left, *b = right;
    double x = a->joules.total, y = b->joules.total;
    if (is_known(x) != is_known(y))
        return is_known(x) ? -1 : 1;
    if (is_known(x) && x != y)
        return x < y ? 1 : -1;
    return (a->first > b->first) - (a->first < b->first);
}

/* Replaces numbers between dots, which distinguish layers, by "*". */
static void collapse(char *to, size_t size, const char *name)
{
    size_t used = 0;
    while (*name && used + 1 < size) {
        size_t digits = strspn(name, "0123456789");
        bool starts = used == 0 || to[used - 1] == '.';
        if (digits && starts && (name[digits] == '.' || !name[digits])) {
            to[used++] = '*';
            name += digits;
        } else {
            to[used++] = *name++;
        }
    }
    to[used] = '\0';
}

static void short_name(char *to, const char *name)
{
    size_t length = strlen(name);
    if (length <= NAME_MAX_CHARS) {
        str_copy(to, NAME_SIZE, name);
        return;
    }
    name += length - (NAME_MAX_CHARS - 1); /* the end of a name is more specific */
    while (utf8_is_continuation(*name))    /* not within a character */
        name++;
    str_format(to, NAME_SIZE, "…%s", name);
}

static struct consumer *find_consumer(struct consumer *all, size_t count, const char *name,
                                      const struct subgraph_total *row)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].first->phase == row->phase && str_equal(all[i].name, name) &&
            str_equal(all[i].first->subgraph->pattern, row->subgraph->pattern))
            return &all[i];
    return NULL;
}

/* Largest energy first; the caller frees them. */
static struct consumer *find_consumers(const struct subgraph_total *rows, size_t row_count,
                                       bool grouped, size_t *count)
{
    struct consumer *all = xcalloc(row_count + 1, sizeof *all);
    *count = 0;
    for (size_t i = 0; i < row_count; i++) {
        const struct subgraph_total *row = &rows[i];
        char whole[256], name[NAME_SIZE];
        if (grouped)
            collapse(whole, sizeof whole, row->subgraph->name);
        else
            chars_copy(whole, row->subgraph->name);
        short_name(name, whole);
        struct consumer *consumer = grouped ? find_consumer(all, *count, name, row) : NULL;
        if (!consumer) {
            consumer = &all[(*count)++];
            chars_copy(consumer->name, name);
            consumer->first = row;
        }
        estimate_joules_add(&consumer->joules, &row->joules, 1);
        consumer->latency_s += row->latency_s;
        consumer->is_mixed = consumer->is_mixed || row->bound != consumer->first->bound;
        consumer->count++;
    }
    for (size_t i = 0; i < *count; i++)
        if (all[i].count == 1) /* alone in its group: keeps its own name */
            short_name(all[i].name, all[i].first->subgraph->name);
    qsort(all, *count, sizeof *all, by_joules);
    return all;
}

static void add_consumer(struct result *result, const struct consumer *consumer)
{
    static const struct result_member JOULES[] = {
        {"energy_j", offsetof(struct estimate_joules, total), "J"},
        {"compute_j", offsetof(struct estimate_joules, compute), "J"},
        {"memory_j", offsetof(struct estimate_joules, memory), "J"},
        {"link_j", offsetof(struct estimate_joules, link), "J"},
        {"static_j", offsetof(struct estimate_joules, idle), "J"},
        {0},
    };
    const struct subgraph_total *first = consumer->first;
    result_group(result, NULL);
    result_text(result, "name", consumer->name);
    result_count(result, "subgraphs", consumer->count);
    result_text(result, "ops", first->subgraph->pattern);
    result_text(result, "phase", first->phase == GRAPH_DECODE ? "decode" : "prefill");
    result_members(result, JOULES, &consumer->joules);
    result_number(result, "latency_s", consumer->latency_s, "s");
    result_text(result, "bound", consumer->is_mixed ? "mixed" : estimate_bound_name(first->bound));
    result_end(result);
}

void consumers_to_result(struct result *result, const struct subgraph_total *rows, size_t count,
                         bool in_full)
{
    size_t found;
    struct consumer *consumers =
        find_consumers(rows, count, !in_full && count <= GROUPED_MAX, &found);
    result_list(result, "consumers");
    for (size_t i = 0; i < found; i++)
        add_consumer(result, &consumers[i]);
    result_end(result);
    free(consumers);
}
