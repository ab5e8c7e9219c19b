#include "runner/microbench/team.h"

/* Instructions of the architecture's baseline. */
#define NAMED(function) plain_##function
#define TARGET
#define WIDTH 16
#include "runner/microbench/kernels.def"
#undef NAMED
#undef TARGET
#undef WIDTH

#if defined(__x86_64__)
#define NAMED(function) avx2_##function
#define TARGET          __attribute__((target("avx2,fma")))
#define WIDTH           32
#include "runner/microbench/kernels.def"
#undef NAMED
#undef TARGET
#undef WIDTH

#define NAMED(function) avx512_##function
#define TARGET          __attribute__((target("avx512f,avx2,fma")))
#define WIDTH           64
#include "runner/microbench/kernels.def"
#endif

const struct kernels *const *kernels_all(void)
{
    static const struct kernels *found[4];
    size_t count = 0;
    found[count++] = &plain_kernels;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[count++] = &avx2_kernels;
    if (count == 2 && __builtin_cpu_supports("avx512f"))
        found[count++] = &avx512_kernels;
#endif
    found[count] = NULL;
    return found;
}
