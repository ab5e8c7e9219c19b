/* Labels from the files that exporters write, and the most probable classes of an output. */
#include "workloads/labels.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/memory.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "port/file.h"
#include "workloads/model_files.h"

enum { LABELS_MAX = 1 << 20, LABELS_BYTES_MAX = 64 << 20 };

void labels_release(struct labels *labels)
{
    memory_free_strings(labels->names, labels->count);
    *labels = (struct labels){0};
}

/* Replaces the name of a class; classes before it that have none yet are numbers. */
static void put(struct labels *labels, size_t index, const char *name)
{
    if (index >= labels->count) {
        labels->names = xreallocarray(labels->names, index + 1, sizeof *labels->names);
        for (; labels->count <= index; labels->count++)
            labels->names[labels->count] = NULL;
    }
    free(labels->names[index]);
    labels->names[index] = xstrdup(name);
}

/* ---- literals of Python and JSON ---- */

struct literal {
    const char *start, *at;
    struct error *why;
};

static enum err unexpected(const struct literal *literal, const char *expected)
{
    return err_set(literal->why, ERR_BAD_VALUE, "class names: expected %s at character %zu",
                   expected, (size_t)(literal->at - literal->start));
}

static char skip_space(struct literal *literal)
{
    while (isspace((unsigned char)*literal->at))
        literal->at++;
    return *literal->at;
}

/* The character of an escape sequence, whose backslash was read; digits of \x and \u are hexadecimal. */
static uint32_t read_escape(struct literal *literal)
{
    char kind = *literal->at;
    int digits = kind == 'x' ? 2 : 0;
    uint32_t code = 0;
    if (kind == 'u' || kind == 'U')
        digits = kind == 'u' ? 4 : 8;
    literal->at += kind != '\0';
    for (; digits > 0 && hex_digit(*literal->at) >= 0; digits--)
        code = code * 16 + (uint32_t)hex_digit(*literal->at++);
    if (code)
        return code > 0x10FFFF ? UTF8_REPLACEMENT : code;
    return kind == 'n' || kind == 't' || kind == 'r' ? ' ' : (uint32_t)(unsigned char)kind;
}

static enum err read_quoted(struct literal *literal, struct text *out)
{
    char quote = skip_space(literal);
    text_clear(out);
    if (quote != '\'' && quote != '"')
        return unexpected(literal, "a quoted name");
    for (literal->at++; *literal->at != quote;) {
        char bytes[UTF8_BYTES_MAX];
        if (!*literal->at)
            return unexpected(literal, "the end of a quoted name");
        if (*literal->at != '\\') {
            text_add_bytes(out, literal->at++, 1);
            continue;
        }
        literal->at++;
        text_add_bytes(out, bytes, utf8_encode(read_escape(literal), bytes));
    }
    literal->at++;
    return ERR_OK;
}

/* The number of a class, perhaps quoted as in JSON, and the colon after it. */
static enum err read_key(struct literal *literal, size_t *index)
{
    char quote = skip_space(literal);
    bool is_quoted = quote == '\'' || quote == '"';
    size_t digits = 0;
    literal->at += is_quoted;
    for (*index = 0; isdigit((unsigned char)*literal->at) && digits < 8; digits++)
        *index = *index * 10 + (size_t)(*literal->at++ - '0');
    if (digits == 0 || *index >= LABELS_MAX)
        return unexpected(literal, "the number of a class");
    if (is_quoted && *literal->at++ != quote)
        return unexpected(literal, "the end of a quoted number");
    if (skip_space(literal) != ':')
        return unexpected(literal, "a colon");
    literal->at++;
    return ERR_OK;
}

static enum err read_items(struct literal *literal, char end, struct labels *out)
{
    struct text name = {0};
    enum err err = ERR_OK;
    while (!err && skip_space(literal) != end) {
        size_t index = out->count;
        if (end == '}')
            err = read_key(literal, &index);
        if (!err)
            err = read_quoted(literal, &name);
        if (!err && index >= LABELS_MAX)
            err = unexpected(literal, "fewer names");
        if (!err)
            put(out, index, text_get(&name));
        if (!err && skip_space(literal) == ',')
            literal->at++;
        else if (!err && *literal->at != end)
            err = unexpected(literal, "a comma");
    }
    text_release(&name);
    return err;
}

enum err labels_parse(const char *source, struct labels *out, struct error *why)
{
    struct literal literal = {source, source, why};
    enum err err;
    *out = (struct labels){0};
    char begin = skip_space(&literal);
    if (begin != '{' && begin != '[')
        return unexpected(&literal, "a dictionary or a list");
    literal.at++;
    err = read_items(&literal, begin == '{' ? '}' : ']', out);
    if (err)
        labels_release(out);
    return err;
}

/* ---- sources ---- */

static enum err read_config(const struct jv *id2label, struct labels *out, struct error *why)
{
    JV_EACH (entry, jv_first_member(id2label)) {
        uint64_t index;
        if (!jv_text(entry) || parse_u64(jv_key(entry), &index) != ERR_OK || index >= LABELS_MAX)
            return err_set(why, ERR_BAD_VALUE,
                           "config.json: id2label.%s: expected the number of a class and its label",
                           plain_text(jv_key(entry)).text);
        put(out, (size_t)index, jv_text(entry));
    }
    return ERR_OK;
}

static enum err read_lines(const char *path, struct labels *out, struct error *why)
{
    struct text text = {0};
    enum err err = file_read(path, LABELS_BYTES_MAX, &text, why);
    char *line = err ? NULL : text.bytes;
    while (line && *line) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : NULL;
        *end = '\0';
        line = str_trim(line);
        if (*line && out->count < LABELS_MAX)
            put(out, out->count, line);
        line = next;
    }
    text_release(&text);
    return err;
}

static enum err read_metadata(const struct onnx_session *session, struct labels *out,
                              struct error *why)
{
    struct error inner = {0};
    char *names = onnx_session_metadata(session, "names");
    enum err err = names ? labels_parse(names, out, &inner) : ERR_OK;
    if (err)
        err = err_set(why, err, "%s: metadata \"names\": %s", onnx_session_facts(session)->path,
                      inner.text);
    free(names);
    return err;
}

enum err labels_load(const struct model_files *files, const struct onnx_session *session,
                     const struct jv *config, struct labels *out, struct error *why)
{
    enum err err;
    *out = (struct labels){0};
    if (jv_first_member(jv_get(config, "id2label"))) {
        err = read_config(jv_get(config, "id2label"), out, why);
    } else {
        char *path = model_files_beside(files, "labels.txt");
        if (!path)
            path = model_files_find(files, "labels.txt");
        err = path ? read_lines(path, out, why) : read_metadata(session, out, why);
        free(path);
    }
    if (err)
        labels_release(out);
    return err;
}

enum err labels_check(const struct labels *labels, size_t classes, const char *model,
                      struct error *why)
{
    if (labels->count == 0 || labels->count == classes)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE, "%s: the model has %zu classes, but %zu label%s", model,
                   classes, labels->count, str_plural((double)labels->count));
}

struct label_text labels_text(const struct labels *labels, size_t index)
{
    struct label_text label;
    if (index < labels->count && labels->names[index])
        chars_copy(label.text, labels->names[index]);
    else
        chars_format(label.text, "%zu", index);
    return label;
}

/* ---- answers ---- */

static bool are_probabilities(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i] < 0)
            return false;
        sum += values[i];
    }
    return fabs(sum - 1) < 1e-3;
}

/* As new probabilities, to be freed. */
static double *probabilities(const float *values, size_t count)
{
    double *out = xcalloc(count, sizeof *out), sum = 0, max = -INFINITY;
    bool is_done = are_probabilities(values, count);
    for (size_t i = 0; i < count; i++)
        max = fmax(max, values[i]);
    for (size_t i = 0; i < count; i++)
        sum += out[i] = is_done ? values[i] : exp(values[i] - max);
    for (size_t i = 0; i < count && !is_done; i++)
        out[i] /= sum;
    return out;
}

void labels_answer(const struct labels *labels, const float *values, size_t count, size_t top,
                   struct text *out)
{
    double *left = probabilities(values, count);
    struct json json;
    json_init(&json, out, false);
    json_array(&json, NULL);
    for (size_t n = 0; n < top && n < count; n++) {
        size_t best = 0;
        char score[32];
        for (size_t i = 1; i < count; i++)
            if (left[i] > left[best])
                best = i;
        chars_format(score, "%.6g", left[best]); /* a float has no more digits */
        left[best] = -1;
        json_object(&json, NULL);
        json_string(&json, "label", labels_text(labels, best).text);
        json_raw(&json, "score", score);
        json_object_end(&json);
    }
    json_array_end(&json);
    free(left);
}
