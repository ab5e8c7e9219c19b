/* Hashes that are the same on every machine and in every version: FNV-1a with 64 bits.  They name content and
 * fill hash tables; they do not resist deliberate collisions.  Pure. */
#ifndef IPW_CORE_HASH_H
#define IPW_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Where a hash starts; the result of one call is the start of the next. */
#define HASH_START UINT64_C(0xCBF29CE484222325)

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length);
uint64_t hash_string(uint64_t hash, const char *string); /* without its NUL */

/* Spreads every input bit over all output bits (the finalizer of splitmix64): the low bits of FNV-1a alone are
 * weak. */
uint64_t hash_mix(uint64_t value);

#endif
