/* Hashes that are the same on every machine and in every version: FNV-1a with 64 bits.  They name content and
 * fill hash tables; they do not resist deliberate collisions.  Pure. */
#ifndef IPW_CORE_HASH_H
#define IPW_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Initial value of a hash; the result of one call is passed to the next. */
#define HASH_START UINT64_C(0xCBF29CE484222325)
#define HASH_PRIME UINT64_C(0x100000001B3)

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ s[i]) * HASH_PRIME;
    return hash;
}

/* Without its NUL. */
static inline uint64_t hash_string(uint64_t hash, const char *string)
{
    for (const unsigned char *s = (const unsigned char *)string; *s; s++)
        hash = (hash ^ *s) * HASH_PRIME;
    return hash;
}

/* Spreads every input bit over all output bits (the finalizer of splitmix64): the low bits of FNV-1a alone are
 * weak. */
static inline uint64_t hash_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

#endif
