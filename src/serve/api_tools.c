/* The API's functions that are not about runs: the server itself. */
#include <string.h>
#include <unistd.h>

#include "report/text/format.h"
#include "serve/parts.h"

enum err api_status(const struct api *api, const struct request *request, struct api_answer *answer,
                    struct error *why)
{
    struct json json;
    char host[128] = "", when[FORMAT_MAX];
    (void)request, (void)why;
    answer->type = "application/json";
    json_init(&json, &answer->body, false);
    json_object(&json, NULL);
    json_string(&json, "version", IPW_VERSION);
    json_string(&json, "host", gethostname(host, sizeof host - 1) ? NULL : host);
    json_string(&json, "started_at", format_time(when, api->started_at));
    json_object(&json, "runs");
    json_string(&json, "source", api->options->runs ? "directory" : "database");
    if (runs_are_read(api->runs))
        json_integer(&json, "count", (int64_t)runs_count(api->runs));
    else
        json_null(&json, "count");
    json_string(&json, "path_shown", runs_shown(api->runs));
    json_object_end(&json);
    json_bool(&json, "live", false);
    json_bool(&json, "allow_runs", api->options->allow_runs);
    json_object_end(&json);
    return ERR_OK;
}

enum err api_openapi(const struct api *api, const struct request *request,
                     struct api_answer *answer, struct error *why)
{
    struct web_file file;
    (void)api, (void)request;
    if (!web_file_find("openapi.json", &file))
        return err_set(why, ERR_NOT_FOUND, "this build has no openapi.json");
    answer->type = file.type;
    text_add_bytes(&answer->body, file.bytes, file.length);
    return ERR_OK;
}
