/* An energy figure as JSON, with its evidence: the same shape wherever one is written. */
#ifndef IPW_CORE_ENERGY_JSON_H
#define IPW_CORE_ENERGY_JSON_H

struct energy;
struct json;

void energy_to_json(struct json *json, const char *key, const struct energy *energy);

#endif
