/* The files of web/serve, and those of web/report that the pages share, embedded at build. */
#include <stdint.h>
#include <string.h>

#include "core/embed.h"
#include "core/hash.h"
#include "report/html/html.h"
#include "serve/parts.h"

#define WEB_FILE(symbol, name) EMBED(symbol, IPW_SERVE_WEB "/" name);
#include "serve/web_files.def"
#undef WEB_FILE

#define SHARED "report/" /* as files of the report are called */

static const struct {
    const char *name, *begin, *end;
} FILES[] = {
#define WEB_FILE(symbol, name) {name, symbol, symbol##_end},
#include "serve/web_files.def"
#undef WEB_FILE
};

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix, *type;
    } TYPES[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"},
                 {".json", "application/json"}};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof TYPES / sizeof *TYPES; i++)
        if (!strcmp(dot, TYPES[i].suffix))
            return TYPES[i].type;
    return dot ? "application/octet-stream" : "text/plain; charset=utf-8"; /* licenses */
}

bool web_file_find(const char *name, struct web_file *out)
{
    *out = (struct web_file){.type = type_of(name)};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        if (!strcmp(FILES[i].name, name)) {
            out->bytes = FILES[i].begin;
            out->length = (size_t)((uintptr_t)FILES[i].end - (uintptr_t)FILES[i].begin);
        }
    if (!out->bytes && str_starts(name, SHARED))
        (void)html_file(name + strlen(SHARED), &out->bytes, &out->length);
    if (!out->bytes)
        return false;
    str_format(out->tag, sizeof out->tag, "\"%016llx\"",
               (unsigned long long)hash_mix(hash_bytes(HASH_START, out->bytes, out->length)));
    return true;
}
