/* What the proxy reads of clients and of the server: bodies of requests, headers, paths, and streams from which it
 * removes what it had asked for.  Nothing but the usage event is removed, in pieces of any size. */
#include "fuzz/fuzz.h"

#include "core/jv.h"
#include "proxy/observer.h"

static void read_body(const char *bytes, size_t length)
{
    static const char *const KEYS[] = {"model", "stream", "messages", "stream_options"};
    static const char PATH[] = "/v1/chat/completions";
    struct text question = {0}, injected = {0};
    struct proxy_request request = {.endpoint = observe_endpoint("POST", PATH, bytes, length)};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        struct slice found = message_member(bytes, length, KEYS[i]);
        fuzz_check(!found.length ||
                   (found.start >= bytes && found.start + found.length <= bytes + length));
    }
    message_question(bytes, length, "messages", &question);
    message_question(bytes, length, "prompt", &question);
    observe_request(&request, PATH, bytes, length);
    fuzz_check(str_is_plain(request.model));
    struct jv *tree = NULL;
    if (usage_inject(bytes, length, &injected) && !jv_parse(bytes, length, &tree, NULL)) {
        jv_free(tree);
        fuzz_check(!jv_parse(injected.bytes, injected.length, &tree, NULL));
        fuzz_check(jv_bool(jv_path(tree, "stream_options.include_usage"), false));
    }
    jv_free(tree);
    text_release(&question);
    text_release(&injected);
}

static void read_headers(char *string)
{
    static const struct proxy_options OPTIONS = {.access = {.token = "the proxy's token"}};
    struct client_keys keys = {0};
    char label[64] = "";
    for (char *name = string, *next; name; name = next) {
        if ((next = strchr(name, '\n')))
            *next++ = '\0';
        char *value = strchr(name, ':');
        if (value)
            *value++ = '\0';
        if (!value || !header_is_name(name) || !header_is_value(value))
            continue;
        fuzz_check(*name && !strpbrk(name, " \r\n\t:") && !strpbrk(value, "\r\n"));
        keys_take(&keys, name, value);
        (void)header_is_forwarded(&OPTIONS, name, value, "close, x-hop");
        (void)header_is_hop_by_hop("x-hop", value);
        observe_label(label, sizeof label, value);
        fuzz_check(str_is_plain(label));
    }
    (void)keys_are_authorized(&keys, OPTIONS.access.token);
    keys_label(&keys, &OPTIONS, label, sizeof label);
    fuzz_check(str_is_plain(label));
    if (header_is_target(string))
        (void)(observe_endpoint("POST", string, "{\"inputs\":1}", 12) ||
               observe_is_other("POST", string, &OPTIONS));
}

static void filter(const char *bytes, size_t length, size_t step, struct text *out)
{
    struct usage_filter filter = {0};
    for (size_t at = 0; at < length; at += step)
        usage_filter_feed(&filter, bytes + at, length - at < step ? length - at : step, out);
    usage_filter_end(&filter, out);
}

static void run(const char *bytes, size_t length)
{
    unsigned choice = fuzz_choose(&bytes, &length, 3);
    if (choice == 0)
        read_body(bytes, length);
    if (choice == 1)
        read_headers(fuzz_string(bytes, length));
    if (choice < 2)
        return;
    struct text whole = {0}, split = {0};
    filter(bytes, length, length + 1, &whole);
    filter(bytes, length, 3, &split);
    fuzz_check(whole.length == split.length && whole.length <= length);
    fuzz_check(!whole.length || !memcmp(whole.bytes, split.bytes, whole.length));
    text_release(&whole);
    text_release(&split);
}

static void seeds(void)
{
    fuzz_seed(0,
              "{\"model\":\"llama\",\"stream\":true,\"messages\":[{\"role\":\"system\",\"content\":"
              "\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"}]}]}");
    fuzz_seed(0, "{\"model\":\"c\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":"
                 "\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":\"r\"}]}]}");
    fuzz_seed(0, "{\"prompt\":[\"a\",\"b\"],\"stream\":true,\"stream_options\":{\"x\":1}}");
    fuzz_seed(0, "{\"input\":\"q\",\"model\":\"m\\u0041\",\"stream\":false}");
    fuzz_seed(1, "Authorization: Bearer sk-0123456789abcdef\nx-api-key: k\nConnection: x-hop\n"
                 "x-ipw-query: 7\nAccept: */*");
    fuzz_seed(1, "/openai/v1/chat/completions?x=%20");
    fuzz_seed(2,
              "data: {\"choices\":[{\"delta\":{}}]}\n\ndata: {\"choices\":[],\"usage\":{}}\r\n\r\n"
              "data: [DONE]\n\n");
}

static const char *const WORDS[] = {"\"model\"",
                                    "\"stream\"",
                                    "\"stream_options\"",
                                    "\"include_usage\"",
                                    "\"messages\"",
                                    "true",
                                    "\"role\"",
                                    "\"user\"",
                                    "\"content\"",
                                    "data: ",
                                    "\"choices\":[]",
                                    "\"usage\"",
                                    "\n\n",
                                    "\r\n\r\n",
                                    NULL};

const struct fuzz_target fuzz_proxy = {
    .run = run, .seeds = seeds, .words = WORDS, .has_values = true};
