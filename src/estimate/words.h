/* What an estimate is of, and what it is based on, in words: its setting, precision, runtime and basis.  Functions with
 * a buffer of ESTIMATE_WORDS_MAX bytes write into it and return it. */
#ifndef IPW_ESTIMATE_WORDS_H
#define IPW_ESTIMATE_WORDS_H

#include <stdbool.h>

#include "estimate/workload_estimate.h"

enum { ESTIMATE_WORDS_MAX = 256 };

/* "fp16, batch 8, 512 prompt and 128 output tokens, 2 devices". */
char *words_setting(char *to, const struct workload_estimate *estimate);
/* "fp16", "stored". */
const char *words_precision(const struct estimate_config *config);
/* "whole", "request", "prefill", "decode". */
const char *words_phase(const struct workload_spec *question);
/* The unit in one word, for column titles: "sample", "token". */
const char *words_unit(const struct estimate_workload *work);
/* "NVIDIA H200 SXM 141GB", followed by the power mode: "...@30W". */
char *words_device(char *to, const struct hardware *hardware);

/* The runtime, and how its times are known: "pytorch-eager (measured)", "ideal (lower bound)", "ideal (no fusion)". */
char *words_runtime(char *to, const struct workload_spec *spec, const struct hardware *hardware,
                    enum precision precision);
enum evidence words_evidence(const struct workload_spec *spec, const struct hardware *hardware,
                             enum precision precision);

/* Kind of estimate: "lower bound with ideal kernels", "kernels of pytorch-graph". */
const char *words_kernels(const struct workload_spec *spec);

/* The same as text: "lower bound with ideal kernels; measured models took 1.2-2.9 times as long". */
char *words_basis(char *to, const struct workload_estimate *estimate);

struct runtime_host words_runtime_host(const struct workload_estimate *estimate);
/* "host launch time assumed: 8.13 µs, ± 26 %; --host-launch-us gives it"; false: it was given, or is not used. */
bool words_host(char *to, const struct workload_estimate *estimate);

#endif
