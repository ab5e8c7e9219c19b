#include "graders/bleu/tokenize.h"

#include "core/text.h"

/* Each step of the definition rewrites the whole line before the next one begins; doing them in one
 * walk would see other neighbours. */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

static void replace(struct text *out, const struct text *in, const char *what, const char *with)
{
    struct slice rest = {text_get(in), in->length};
    const char *kept = rest.start; /* where the text that is not yet copied begins */
    while (rest.length) {
        size_t step = 1;
        if (slice_starts(rest, what)) {
            text_add_bytes(out, kept, (size_t)(rest.start - kept));
            text_add(out, with);
            step = strlen(what);
            kept = rest.start + step;
        }
        rest.start += step;
        rest.length -= step;
    }
    text_add_bytes(out, kept, (size_t)(rest.start - kept));
}

/* Marks that are tokens wherever they stand: ASCII's, but for ' , - . */
static bool is_mark(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static void split_marks(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        char spaced[] = {' ', *c, ' '};
        if (is_mark(*c))
            text_add_bytes(out, spaced, 3);
        else
            text_add_bytes(out, c, 1);
    }
}

/* A full stop or comma after anything but a digit. */
static void split_stops_after(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        text_add_bytes(out, c, 1);
        if (!is_digit(*c) && is_stop(c[1])) {
            char spaced[] = {' ', *++c, ' '};
            text_add_bytes(out, spaced, 3);
        }
    }
}

/* A full stop or comma before anything but a digit. */
static void split_stops_before(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        if (is_stop(*c) && c[1] && !is_digit(c[1])) {
            char spaced[] = {' ', *c, ' ', c[1]};
            text_add_bytes(out, spaced, 4);
            c++;
        } else {
            text_add_bytes(out, c, 1);
        }
    }
}

static void split_dashes(struct text *out, const struct text *in)
{
    for (const char *c = text_get(in); *c; c++) {
        text_add_bytes(out, c, 1);
        if (is_digit(*c) && c[1] == '-') {
            text_add(out, " - ");
            c++;
        }
    }
}

/* Lets a step write into *spare, and makes that the line. */
static void turn(struct text *line, struct text *spare)
{
    struct text written = *spare;
    *spare = *line;
    *line = written;
    if (spare->failed)
        line->failed = true;
    text_clear(spare);
}

void tokenize_13a(struct text *out, struct slice from)
{
    static const char *const PAIRS[][2] = {
        {"<skipped>", ""}, {"-\n", ""},   {"\n", " "},   {"&quot;", "\""},
        {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"},
    };
    static void (*const STEPS[])(struct text *, const struct text *) = {
        split_marks, split_stops_after, split_stops_before, split_dashes};
    struct text line = {0}, spare = {0};
    text_add_bytes(&line, from.start, from.length);
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        replace(&spare, &line, PAIRS[i][0], PAIRS[i][1]);
        turn(&line, &spare);
    }
    text_add(&spare, " ");
    text_add(&spare, text_get(&line));
    text_add(&spare, " ");
    turn(&line, &spare);
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        STEPS[i](&spare, &line);
        turn(&line, &spare);
    }
    text_add(out, text_get(&line));
    if (line.failed || spare.failed)
        out->failed = true;
    text_release(&line);
    text_release(&spare);
}
