/* The machine's total: a sum of devices in which nothing stands twice.  Private to the ledger. */
#ifndef IPW_ATTRIBUTE_TOTAL_H
#define IPW_ATTRIBUTE_TOTAL_H

struct figure;
struct ledger;
struct sampler;

/* Decides which devices are counted and adds them up; main_of has each device's figure, or NULL. */
void total_take(const struct sampler *sampler, const struct figure *const *main_of,
                struct ledger *ledger);

#endif
