/* libFuzzer: any bytes as a CSV table: every cell that it claims to have can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

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
        if (letters > length)
            abort();
        csv_grid_release(&grid);
    } else if (!why.text[0]) {
        abort();
    }
    free(copy);
    return 0;
}
