#include "report/html/sections.h"

enum err assets_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without ECharts: run tools/setup build and build again");
}

struct asset asset_template(void)
{
    return (struct asset){"", 0};
}

struct asset asset_find(const char *name, size_t length)
{
    return (struct asset){NULL, 0};
}
