/* Which subgraphs cost the same: layers of a decoder are alike, and what holds of one holds of all. */
#ifndef IPW_ESTIMATE_PARTITION_KINDS_H
#define IPW_ESTIMATE_PARTITION_KINDS_H

#include "estimate/partition.h"

/* Fills kinds, kind_of and kind_count of a partition that is complete otherwise, in linear time. */
enum err find_kinds(struct partition *out) MUST_USE;

#endif
