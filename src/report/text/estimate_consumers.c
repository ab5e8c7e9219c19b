#include "report/text/estimate_consumers.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"

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

/* A piece between dots that is a number says which of several: "*". */
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
    if (length <= CONSUMER_NAME_MOST) {
        str_copy(to, CONSUMER_NAME_MOST + 8, name);
        return;
    }
    name += length - (CONSUMER_NAME_MOST - 1); /* the end tells more than the beginning */
    while (utf8_is_continuation(*name))             /* not inside of a character */
        name++;
    str_format(to, CONSUMER_NAME_MOST + 8, "…%s", name);
}

static struct consumer *find_consumer(struct consumer *all, size_t count, const char *name,
                                      const struct subgraph_total *row)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].first->phase == row->phase && strcmp(all[i].name, name) == 0 &&
            strcmp(all[i].first->subgraph->pattern, row->subgraph->pattern) == 0)
            return &all[i];
    return NULL;
}

static void add_joules(struct estimate_joules *sum, const struct estimate_joules *more)
{
    sum->compute += more->compute;
    sum->memory += more->memory;
    sum->idle += more->idle;
    sum->link += more->link;
    sum->total += more->total;
}

/* Of very many subgraphs each is its own: looking for its like would take long. */
enum { GROUPED_MOST = 5000 };

struct consumer *consumers_of(const struct estimate_report *report, size_t *count)
{
    struct consumer *all = calloc(report->row_count + 1, sizeof *all);
    bool grouped = !report->shows_figures && report->row_count <= GROUPED_MOST;
    *count = 0;
    for (size_t i = 0; all && i < report->row_count; i++) {
        const struct subgraph_total *row = &report->rows[i];
        char whole[256], name[CONSUMER_NAME_MOST + 8];
        if (grouped)
            collapse(whole, sizeof whole, row->subgraph->name);
        else
            str_copy(whole, sizeof whole, row->subgraph->name);
        short_name(name, whole);
        struct consumer *consumer = grouped ? find_consumer(all, *count, name, row) : NULL;
        if (!consumer) {
            consumer = &all[(*count)++];
            str_copy(consumer->name, sizeof consumer->name, name);
            consumer->first = row;
        }
        add_joules(&consumer->joules, &row->joules);
        consumer->latency_s += row->latency_s;
        consumer->is_mixed = consumer->is_mixed || row->bound != consumer->first->bound;
        consumer->count++;
    }
    for (size_t i = 0; all && i < *count; i++)
        if (all[i].count == 1) /* one of its kind keeps its own name */
            short_name(all[i].name, all[i].first->subgraph->name);
    if (all)
        qsort(all, *count, sizeof *all, by_joules);
    return all;
}
