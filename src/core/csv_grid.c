#include "core/csv_grid.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"

struct cutter {
    char *at, *end;
    size_t line; /* that `at` stands on */
    struct csv_grid *grid;
    size_t count, cell_room, line_room;
};

static enum err out_of_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "out of memory");
}

/* Cuts a quoted field, doubled quotes made one; what stands behind it must be a comma or an end of line. */
static enum err cut_quoted(struct cutter *c, struct error *why)
{
    size_t began = c->line;
    char *from = ++c->at, *to = from;
    for (;; from++) {
        if (from >= c->end)
            return err_set(why, ERR_BAD_VALUE, "line %zu: a quote that is not closed", began);
        if (*from == '"') {
            if (from[1] != '"')
                break;
            from++;
        }
        c->line += *from == '\n';
        *to++ = *from;
    }
    c->at = from + 1;
    if (c->at < c->end && !strchr(",\r\n", *c->at))
        return err_set(why, ERR_BAD_VALUE, "line %zu: text behind a closing quote", c->line);
    /* The separator is looked at before this NUL can cover it: `to` is at most the closing quote. */
    *to = '\0';
    return ERR_OK;
}

static enum err add_cell(struct cutter *c, char *cell, struct error *why)
{
    char **cells = grow(c->grid->cells, &c->cell_room, c->count, sizeof *cells);
    if (!cells)
        return out_of_memory(why);
    c->grid->cells = cells;
    cells[c->count++] = cell;
    return ERR_OK;
}

/* One field; *ends when the record does with it. */
static enum err cut_field(struct cutter *c, bool *ends, struct error *why)
{
    bool quoted = c->at < c->end && *c->at == '"';
    char *cell = c->at + quoted;
    if (quoted) {
        enum err err = cut_quoted(c, why);
        if (err)
            return err;
    } else {
        c->at += strcspn(c->at, ",\r\n");
    }
    *ends = c->at >= c->end || *c->at != ',';
    bool has_return = c->at < c->end && *c->at == '\r';
    if (c->at < c->end) {
        char *stop = c->at++;
        if (has_return && c->at < c->end && *c->at == '\n')
            c->at++;
        *stop = '\0';
        c->line += *ends;
    }
    return add_cell(c, cell, why);
}

static enum err cut_record(struct cutter *c, struct error *why)
{
    size_t before = c->count, line = c->line;
    struct csv_grid *grid = c->grid;
    bool ends = false;
    while (!ends) {
        enum err err = cut_field(c, &ends, why);
        if (err)
            return err;
    }
    size_t fields = c->count - before;
    if (before == 0) {
        grid->columns = fields;
        return ERR_OK;
    }
    if (fields == 1 && !*grid->cells[before] && grid->columns > 1) {
        c->count = before; /* a blank line */
        return ERR_OK;
    }
    if (fields != grid->columns)
        return err_set(why, ERR_BAD_VALUE, "line %zu: %zu fields where %zu columns are named", line,
                       fields, grid->columns);
    size_t *lines = grow(grid->lines, &c->line_room, grid->rows, sizeof *lines);
    if (!lines)
        return out_of_memory(why);
    grid->lines = lines;
    lines[grid->rows++] = line;
    return ERR_OK;
}

enum err csv_grid_read(char *bytes, size_t length, struct csv_grid *out, struct error *why)
{
    static const char MARK[] = "\xEF\xBB\xBF"; /* what some editors begin a file with */
    *out = (struct csv_grid){0};
    struct cutter c = {.at = bytes, .end = bytes + length, .line = 1, .grid = out};
    if (length >= 3 && !memcmp(bytes, MARK, 3))
        c.at += 3;
    if (memchr(bytes, '\0', length))
        return err_set(why, ERR_BAD_VALUE, "not a CSV file: it holds a NUL");
    enum err err = ERR_OK;
    while (!err && c.at < c.end)
        err = cut_record(&c, why);
    if (!err && out->columns == 0)
        err = err_set(why, ERR_BAD_VALUE, "empty: the first line must name the columns");
    for (size_t i = 0; !err && i < out->columns; i++)
        out->cells[i] = str_trim(out->cells[i]);
    if (err)
        csv_grid_release(out);
    return err;
}

void csv_grid_release(struct csv_grid *grid)
{
    free(grid->cells);
    free(grid->lines);
    *grid = (struct csv_grid){0};
}

long csv_grid_column(const struct csv_grid *grid, const char *name)
{
    for (size_t i = 0; i < grid->columns; i++)
        if (!strcmp(grid->cells[i], name))
            return (long)i;
    return -1;
}

const char *csv_grid_cell(const struct csv_grid *grid, size_t row, long column)
{
    return column < 0 ? "" : grid->cells[(row + 1) * grid->columns + (size_t)column];
}
