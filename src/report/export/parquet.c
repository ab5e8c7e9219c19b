/* Parquet, by name only.  What writes it well is Arrow's C++ library, which Debian 12 does not have and which
 * would outweigh all of ipw; the way around takes one line. */
#include "report/export/export.h"

static enum err parquet_available(struct error *why)
{
    return err_set(
        why, ERR_UNSUPPORTED,
        "no C library that writes Parquet is in Debian; use --to hf -o DIR, then python3 "
        "-c 'import datasets; datasets.load_from_disk(\"DIR\").flatten().to_parquet(\"FILE\")'");
}

static enum err parquet_refuse(struct export *export, struct error *why)
{
    (void)export;
    return parquet_available(why);
}

const struct export_driver export_parquet = {
    .name = "parquet",
    .summary = "Parquet",
    .makes_files = true,
    .available = parquet_available,
    .begin = parquet_refuse,
    .end = parquet_refuse,
};
