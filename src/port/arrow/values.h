/* The values of one column of a batch, for arrow_read.c alone.  Nothing is owned. */
#ifndef IPW_PORT_ARROW_VALUES_H
#define IPW_PORT_ARROW_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct ArrowArrayView;
struct arrow_place;
struct arrow_text;

/* As arrow_reader_numbers and its likes, of a batch that was checked. */
void arrow_values_numbers(const struct ArrowArrayView *batch, const struct arrow_place *place,
                          double *out, uint64_t *not_finite);
void arrow_values_texts(const struct ArrowArrayView *batch, const struct arrow_place *place,
                        struct arrow_text *out);
void arrow_values_known(const struct ArrowArrayView *batch, const struct arrow_place *place,
                        bool *out);

#endif
