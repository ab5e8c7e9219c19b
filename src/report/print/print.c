/* The formats of results by name. */
#include "report/print/print.h"

#include "core/json.h"
#include "core/text.h"

const char *const PRINT_FORMATS[] = {
    [PRINT_TABLE] = "table",
    [PRINT_JSON] = "json",
    [PRINT_CSV] = "csv",
    [PRINT_MARKDOWN] = "md",
    NULL,
};

enum print_format print_format_named(const char *name)
{
    const char *const *found = STR_FIND(name, PRINT_FORMATS);
    return found ? (enum print_format)(found - PRINT_FORMATS) : PRINT_TABLE;
}

static void print_json(const struct result *result, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    result_to_json(result, NULL, &json);
}

static void write_page(const struct print_views *views, struct print_page *page)
{
    views->page(page);
    text_release(&page->words);
}

void result_print(const struct result *result, enum print_format format,
                  const struct print_views *views, bool color, struct text *out)
{
    struct print_page page = {.result = result, .out = out};
    page.is_markdown = format == PRINT_MARKDOWN;
    page.color = color && !page.is_markdown;
    switch (format) {
    case PRINT_JSON:
        print_json(result, out);
        if (views && views->has_blank_line)
            text_add(out, "\n");
        break;
    case PRINT_CSV:
        result_to_csv(result, out);
        break;
    case PRINT_MARKDOWN:
        if (views && views->page)
            write_page(views, &page);
        else if (views && views->markdown)
            views->markdown(result, color, out);
        else
            result_to_markdown(result, out);
        break;
    case PRINT_TABLE:
        if (views && views->page)
            write_page(views, &page);
        else if (views && views->text)
            views->text(result, color, out);
        else
            result_to_text(result, color, out);
        break;
    }
}
