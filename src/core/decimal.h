/* Numbers as decimal digits, the fewest that give the same number back.  Buffers are the caller's. */
#ifndef IPW_CORE_DECIMAL_H
#define IPW_CORE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

enum { DECIMAL_SIZE = 40 }; /* room for any of them */

/* A finite number as printf's %g writes it, with the first of 9, 15, 16 or 17 digits that reads back as
 * the same: sums of figures must still hold for who reads them, and 231.6 must not become
 * 231.59999999999999.  Returns the length. */
size_t decimal_from_double(double value, char out[DECIMAL_SIZE]);
size_t decimal_from_integer(int64_t value, char out[DECIMAL_SIZE]);

#endif
