/* libFuzzer: any bytes as a CSV table: every cell can be read, and a stream that returns a few
 * bytes at a time has as many rows as the table. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

struct pieces {
    const uint8_t *bytes;
    size_t length, at;
};

static long read_piece(void *context, char *to, size_t size)
{
    struct pieces *pieces = context;
    size_t left = pieces->length - pieces->at, taken = left < 3 ? left : 3;
    taken = taken < size ? taken : size;
    memcpy(to, pieces->bytes + pieces->at, taken);
    pieces->at += taken;
    return (long)taken;
}

/* Valid rows, including the header. */
static size_t count_rows(const uint8_t *bytes, size_t length)
{
    struct pieces pieces = {bytes, length, 0};
    struct csv_reader reader;
    struct csv_row row;
    struct error why;
    bool end = false;
    size_t rows = 0;
    csv_reader_source(&reader, read_piece, &pieces);
    while (!end) {
        enum err err = csv_reader_next(&reader, &row, &end, &why);
        rows += !err && !end;
    }
    csv_reader_release(&reader);
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    struct csv_grid grid;
    struct error why = {0};
    size_t letters = 0;
    if (!copy)
        return 0;
    if (length)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    if (csv_grid_read(copy, length, &grid, &why) == ERR_OK) {
        for (size_t row = 0; row < grid.rows; row++)
            for (size_t column = 0; column < grid.columns; column++)
                letters += strlen(csv_grid_cell(&grid, row, (long)column));
        if (letters > length || count_rows(bytes, length) != grid.rows + 1)
            abort();
        csv_grid_release(&grid);
    } else if (!why.text[0]) {
        abort();
    } else {
        count_rows(bytes, length);
    }
    free(copy);
    return 0;
}
