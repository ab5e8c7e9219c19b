/* Devices and ledgers as JSON, the same shape in every command. */
#ifndef IPW_ATTRIBUTE_LEDGER_JSON_H
#define IPW_ATTRIBUTE_LEDGER_JSON_H

#include <stdbool.h>

struct json;
struct ledger;
struct ledger_device;

/* One element of "devices"; the fields alone let a caller add its own to the object it opened. */
void device_fields_to_json(struct json *json, const struct ledger_device *device);

/* The array "devices" of the ledger. */
void devices_to_json(struct json *json, const char *key, const struct ledger *ledger);

#endif
