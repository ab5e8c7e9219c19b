#include "report/text/page.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/result.h"
#include "core/text.h"
#include "report/text/format.h"

double page_number(const struct print_page *page, const char *path)
{
    return result_number_at(page->result->items, path);
}

const char *page_word(const struct print_page *page, const char *path)
{
    return result_text_at(page->result->items, path);
}

bool page_flag(const struct print_page *page, const char *path)
{
    return result_flag_at(page->result->items, path);
}

const char *page_style(const struct print_page *page, enum page_style style)
{
    static const char *const CODES[] = {
        [PAGE_PLAIN] = "\033[0m",
        [PAGE_BOLD] = "\033[1m",
        [PAGE_RED] = "\033[31m",
        [PAGE_GREEN] = "\033[32m",
    };
    return page->color ? CODES[style] : "";
}

void page_line(const struct print_page *page, const char *name, const char *format, ...)
{
    char words[512];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    if (page->is_markdown) {
        text_addf(page->out, "| %s | ", name);
        markdown_add(page->out, words);
        text_add(page->out, " |\n");
    } else {
        text_addf(page->out, "   %-12s %s\n", name, words);
    }
}

void page_item(const struct print_page *page, const char *format, ...)
{
    char words[512];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    text_add(page->out, page->is_markdown ? "- " : "     ");
    (page->is_markdown ? markdown_add : text_add)(page->out, words);
    text_add(page->out, "\n");
}

void page_heading(const struct print_page *page, const char *words)
{
    if (page->is_markdown)
        text_addf(page->out, "\n**%s**\n\n", words);
    else
        text_addf(page->out, "\n   %s%s%s\n", page_style(page, PAGE_BOLD), words,
                  page_style(page, PAGE_PLAIN));
}

void page_table(const struct print_page *page, struct table *table, const char *indent)
{
    if (page->is_markdown)
        table_write_markdown(table, page->out);
    else
        table_write(table, indent, page->color, page->out);
    table_release(table);
}
