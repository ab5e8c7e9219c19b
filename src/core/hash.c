#include "core/hash.h"

#define FNV_PRIME UINT64_C(0x100000001B3)

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ s[i]) * FNV_PRIME;
    return hash;
}

uint64_t hash_string(uint64_t hash, const char *string)
{
    for (const unsigned char *s = (const unsigned char *)string; *s; s++)
        hash = (hash ^ *s) * FNV_PRIME;
    return hash;
}

uint64_t hash_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}
