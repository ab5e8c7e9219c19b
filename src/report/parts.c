#include "report/parts.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/err.h"
#include "core/json.h"
#include "core/text.h"
#include "engine/engine.h"
#include "port/arrow_write.h"
#include "port/http.h"
#include "port/json_read.h"
#include "report/plot/gnuplot.h"
#include "report/html/html.h"
#include "rundir/store.h"

static enum err sqlite_available(struct error *why)
{
    for (size_t i = 0; STORE_DRIVERS[i]; i++)
        if (strcmp(STORE_DRIVERS[i]->name, "sqlite") == 0)
            return STORE_DRIVERS[i]->available ? STORE_DRIVERS[i]->available(why) : ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "not in this build");
}

static enum err llama_available(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

static const struct {
    const char *name, *needed_by;
    enum err (*available)(struct error *why);
} PARTS[] = {
    {"cJSON", "ipw profile", jv_available},
    {"libcurl", "ipw profile: clients openai and ollama, dataset hub", http_available},
    {"nanoarrow", "ipw profile: Arrow output, dataset hf", arrow_write_available},
    {"llama.cpp", "client llama: in-process inference", llama_available},
    {"gnuplot", "ipw plot", gnuplot_available},
    {"SQLite", "ipw profile: index of runs", sqlite_available},
    {"ECharts", "ipw report", html_available},
};

void parts_text(struct text *out)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        struct error why = {0};
        if (PARTS[i].available(&why) != ERR_OK)
            text_addf(out, "missing %s (%s): %s\n", PARTS[i].name, PARTS[i].needed_by, why.text);
    }
    const struct engine_library *library;
    if (engine_library_open(&library, NULL) == ERR_OK && !library->is_tested)
        text_addf(out, "llama.cpp %s of %s is not a tested version (tested: %s)\n",
                  library->version[0] ? library->version : "(unknown)", library->path,
                  engine_tested_versions());
}

void parts_to_json(struct json *json)
{
    json_array(json, "parts");
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        struct error why = {0};
        bool available = PARTS[i].available(&why) == ERR_OK;
        json_object(json, NULL);
        json_string(json, "name", PARTS[i].name);
        json_string(json, "needed_by", PARTS[i].needed_by);
        json_bool(json, "available", available);
        json_string(json, "missing", available ? NULL : why.text);
        json_object_end(json);
    }
    json_array_end(json);
}
