/* Lines and server-sent events: the same ones whether the bytes arrive at once or one at a time. */
#include "fuzz/fuzz.h"

#include "wire/sse.h"

/* What arrived, with separators. */
struct seen {
    struct text out;
    size_t events;
};

static enum err take_event(void *context, const struct sse_event *event)
{
    struct seen *seen = context;
    fuzz_check(event->data[event->length] == '\0');
    text_addf(&seen->out, "%s|%zu|", event->name, event->length);
    text_add_bytes(&seen->out, event->data, event->length);
    return ++seen->events < 1000 ? ERR_OK : ERR_BUSY;
}

static enum err take_line(void *context, const char *line, size_t length, nanos t)
{
    (void)t;
    struct seen *seen = context;
    text_addf(&seen->out, "%zu|", length);
    text_add_bytes(&seen->out, line, length);
    return ++seen->events < 1000 ? ERR_OK : ERR_BUSY;
}

static struct seen read_events(const char *bytes, size_t length, size_t step)
{
    struct seen seen = {0};
    struct error why = {0};
    struct sse sse;
    enum err err = ERR_OK;
    sse_init(&sse, take_event, &seen, &why);
    for (size_t at = 0; at < length && !err; at += step)
        err = sse_feed(&sse, bytes + at, length - at < step ? length - at : step, 1);
    if (!err)
        err = sse_end(&sse, 2);
    sse_release(&sse);
    return seen;
}

static struct seen read_lines(const char *bytes, size_t length, size_t step)
{
    struct seen seen = {0};
    struct error why = {0};
    struct line_reader reader = {0};
    enum err err = ERR_OK;
    for (size_t at = 0; at < length && !err; at += step)
        err = line_reader_feed(&reader, bytes + at, length - at < step ? length - at : step, 1,
                               take_line, &seen, &why);
    line_reader_release(&reader);
    return seen;
}

static void run(const char *bytes, size_t length)
{
    bool is_lines = fuzz_choose(&bytes, &length, 2);
    struct seen (*read)(const char *, size_t, size_t) = is_lines ? read_lines : read_events;
    struct seen whole = read(bytes, length, length + 1), split = read(bytes, length, 1);
    fuzz_check(whole.events == split.events && whole.out.length == split.out.length);
    fuzz_check(!whole.out.length || !memcmp(whole.out.bytes, split.out.bytes, whole.out.length));
    text_release(&whole.out);
    text_release(&split.out);
}

static void seeds(void)
{
    fuzz_seed(0, "\xEF\xBB\xBF: comment\nevent: a\r\ndata: 1\rdata:2\nid: 3\nretry: 9\n\ndata\n\n");
    fuzz_seed(0, "data: {\"a\":1}\n\ndata: [DONE]");
    fuzz_seed(1, "{\"a\":1}\n\r\n{\"b\":2}\r\n{\"c\"");
}

static const char *const WORDS[] = {"data: ", "event: ", "id: ",         "retry: ", "\r\n",
                                    "\n\n",   "\r\r",    "\xEF\xBB\xBF", NULL};

const struct fuzz_target fuzz_sse = {.run = run, .seeds = seeds, .words = WORDS};
