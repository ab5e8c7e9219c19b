/* Published accuracies of a model, by its names. */
#include "catalog/accuracy.h"

#include <string.h>
#include <strings.h>

#include "catalog/model.h"
#include "core/jv.h"
#include "core/result.h"
#include "core/text.h"

/* Whether both names have an owner, and not the same. */
static bool owners_differ(const char *a, const char *b)
{
    const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');
    if (!end_a || !end_b)
        return false;
    return end_a - a != end_b - b || strncasecmp(a, b, (size_t)(end_a - a)) != 0;
}

static bool is_same(const char *a, const char *b)
{
    char first[MODEL_NAME_MAX], second[MODEL_NAME_MAX];
    model_name_normalize(a, first, sizeof first);
    model_name_normalize(b, second, sizeof second);
    return first[0] && str_equal(first, second);
}

/* Whether a table's model is the one of this name, or of another name of its card (NULL: none). */
static bool is_of(const char *listed, const char *name, const struct model_card *card)
{
    if (owners_differ(listed, name))
        return false;
    if (is_same(listed, name))
        return true;
    for (size_t i = 0; card && card->names[i]; i++)
        if (is_same(listed, card->names[i]))
            return true;
    return false;
}

size_t model_accuracies(const char *name, struct accuracy out[ACCURACIES_MAX])
{
    const struct model_card *card = model_card_find(name);
    size_t count = 0;
    for (size_t i = 0; i < model_accuracy_table_count(); i++) {
        const struct accuracy_table *table = model_accuracy_table_at(i);
        JV_EACH (member, jv_first_member(table->percent.value))
            if (count < ACCURACIES_MAX && is_of(jv_key(member), name, card))
                out[count++] = (struct accuracy){
                    .benchmark = benchmark_find(table->benchmark),
                    .model = jv_key(member),
                    .source = table->source,
                    .note = table->note,
                    .percent = jv_number(member),
                };
    }
    return count;
}

void accuracy_to_result(struct result *result, const struct accuracy *accuracy)
{
    result_group(result, NULL);
    result_text(result, "benchmark", accuracy->benchmark->name);
    result_text(result, "title", accuracy->benchmark->title);
    result_number(result, "percent", accuracy->percent, "");
    result_text(result, "model", accuracy->model);
    result_text(result, "source", accuracy->source);
    result_optional_text(result, "note", accuracy->note);
    result_end(result);
}
