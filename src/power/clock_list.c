#include "power/clock_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/csv_read.h"
#include "port/file.h"
#include "stats/descriptive.h"

void clock_list_add(struct clock_list *list, const char *gpu, double mem_mhz, double mhz)
{
    XGROW(list->items, list->count, list->capacity);
    list->items[list->count] = (struct clock_entry){.mem_mhz = mem_mhz, .mhz = mhz};
    str_copy(list->items[list->count++].gpu, sizeof list->items->gpu, gpu);
}

void clock_list_release(struct clock_list *list)
{
    free(list->items);
    *list = (struct clock_list){0};
}

static enum err read_rows(struct clock_list *list, const char *path, const struct csv_grid *grid,
                          struct error *why)
{
    long gpu = csv_grid_column(grid, "gpu"), mem = csv_grid_column(grid, "mem_mhz");
    long graphics = csv_grid_column(grid, "graphics_mhz");
    if (gpu < 0 || graphics < 0)
        return err_set(why, ERR_BAD_VALUE, "%.200s: columns gpu and graphics_mhz are needed", path);
    for (size_t row = 0; row < grid->rows; row++) {
        double mhz, mem_mhz = UNKNOWN;
        if (parse_double(csv_grid_cell(grid, row, graphics), &mhz) || !(mhz > 0))
            return err_set(why, ERR_BAD_VALUE, "%.200s:%zu: graphics_mhz: not a number above 0",
                           path, grid->lines[row]);
        if (parse_double(csv_grid_cell(grid, row, mem), &mem_mhz) != ERR_OK)
            mem_mhz = UNKNOWN;
        clock_list_add(list, csv_grid_cell(grid, row, gpu), mem_mhz, mhz);
    }
    return ERR_OK;
}

enum err clock_list_read(struct clock_list *list, const char *path, struct error *why)
{
    struct text bytes = {0};
    struct csv_grid grid;
    enum err err = csv_read(path, FILE_SMALL, &bytes, &grid, why);
    if (!err)
        err = read_rows(list, path, &grid, why);
    csv_grid_release(&grid);
    text_release(&bytes);
    return err;
}

/* "H200" of "NVIDIA H200 x1": without vendor and device count. */
static void model_name(const char *gpu, char *to, size_t size)
{
    static const char VENDOR[] = "NVIDIA ";
    str_copy(to, size, strncasecmp(gpu, VENDOR, sizeof VENDOR - 1) ? gpu : gpu + sizeof VENDOR - 1);
    char *last = strrchr(to, ' ');
    if (last && last[1] == 'x' && last[2] && !last[2 + strspn(last + 2, "0123456789")])
        *last = '\0';
}

static bool is_same_gpu(const char *one, const char *other)
{
    char a[64], b[64];
    model_name(one, a, sizeof a);
    model_name(other, b, sizeof b);
    return str_equal_nocase(a, b);
}

/* The nearest clock of a GPU; UNKNOWN if the GPU is not listed. */
static double nearest(const struct clock_list *list, const char *gpu, double mhz)
{
    double nearest = UNKNOWN;
    for (size_t i = 0; i < list->count; i++) {
        double clock = list->items[i].mhz;
        if (is_same_gpu(list->items[i].gpu, gpu) && !(fabs(clock - mhz) >= fabs(nearest - mhz)))
            nearest = clock;
    }
    return nearest;
}

bool clock_list_has(const struct clock_list *list, const char *gpu)
{
    return is_known(nearest(list, gpu, 1));
}

bool clock_list_is_legal(const struct clock_list *list, const char *gpu, double mhz)
{
    return fabs(nearest(list, gpu, mhz) - mhz) <= 0.5;
}

size_t clock_list_usable(const struct clock_list *list, const char *gpu, double min, double *out,
                         size_t limit)
{
    double mem_mhz = UNKNOWN;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (is_same_gpu(list->items[i].gpu, gpu))
            mem_mhz = fmax(mem_mhz, list->items[i].mem_mhz); /* of a number and a NaN: the number */
    for (size_t i = 0; i < list->count && count < limit; i++) {
        const struct clock_entry *entry = &list->items[i];
        if (is_same_gpu(entry->gpu, gpu) && entry->mhz >= min && !(entry->mem_mhz < mem_mhz))
            out[count++] = entry->mhz;
    }
    sort_ascending(out, count);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || out[i] != out[kept - 1])
            out[kept++] = out[i];
    return kept;
}
