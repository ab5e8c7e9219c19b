/* Results of `ipw layers` together: energy per token against prompt length, a line for each model and phase, and
 * against parameters where model sizes differ.  Results of the same model, measured with the same setup, make one line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/plot/plot.h"
#include "rundir/layers_result.h"

/* Above this ratio of the largest to the smallest figure the axis is logarithmic. */
#define LINEAR_MAX 30

/* ---- points ---- */

struct points {
    struct figure_point *items; /* of joules per token */
    size_t count;
};

static bool same_text(const char *a, const char *b)
{
    return str_equal(text_or_empty(a), text_or_empty(b));
}

/* Whether both were measured on the same machine and in the same way. */
static bool same_setup(const struct layers_result *a, const struct layers_result *b)
{
    return same_text(a->hardware_label, b->hardware_label) && is_same_number(a->batch, b->batch) &&
           is_same_number(a->gpu_layers, b->gpu_layers) && is_same_number(a->threads, b->threads);
}

/* The file may be at different paths. */
static bool is_same_model(const struct layers_result *a, const struct layers_result *b)
{
    return same_text(layers_result_name(a), layers_result_name(b)) &&
           is_same_number(a->parameters, b->parameters) &&
           is_same_number(a->tensor_bytes, b->tensor_bytes);
}

static bool is_one_line(const struct layers_result *a, const struct layers_result *b)
{
    return is_same_model(a, b) && same_setup(a, b);
}

static bool in_phase(const struct result_setting *setting, size_t phase)
{
    return same_text(setting->phase, RESULT_PHASE[phase]) && setting->energy_j > 0 &&
           setting->tokens > 0 && setting->prompt_tokens > 0;
}

static void add_point(struct points *points, double x, const struct result_setting *setting)
{
    points->items[points->count++] = (struct figure_point){x, setting->energy_j / setting->tokens,
                                                           setting->plus_minus / setting->tokens};
}

/* ---- extent of the data ---- */

struct extent {
    size_t settings, known; /* known: with energy */
    size_t models, estimated;
    double min_prompt, max_prompt, min_size, max_size, min_joules, max_joules;
};

static struct extent extent_of(const struct plot_source *source)
{
    struct extent out = {.min_prompt = INFINITY, .min_size = INFINITY, .min_joules = INFINITY};
    for (size_t i = 0; i < source->layer_count; i++) {
        const struct layers_result *model = &source->layers[i];
        size_t before = out.known;
        for (size_t s = 0; s < model->setting_count; s++) {
            const struct result_setting *setting = &model->settings[s];
            double joules = setting->energy_j / setting->tokens;
            out.settings++;
            if (!in_phase(setting, 0) && !in_phase(setting, 1))
                continue;
            out.known++;
            out.min_prompt = fmin(out.min_prompt, setting->prompt_tokens);
            out.max_prompt = fmax(out.max_prompt, setting->prompt_tokens);
            out.min_joules = fmin(out.min_joules, joules);
            out.max_joules = fmax(out.max_joules, joules);
        }
        if (out.known > before && model->parameters > 0) {
            out.min_size = fmin(out.min_size, model->parameters);
            out.max_size = fmax(out.max_size, model->parameters);
        }
        out.models += out.known > before;
        out.estimated += out.known > before && layers_result_is_estimated(model);
    }
    return out;
}

/* ---- names ---- */

static bool name_is_taken(const struct plot_source *source, const struct layers_result *model)
{
    for (size_t i = 0; i < source->layer_count; i++)
        if (!is_same_model(&source->layers[i], model) &&
            same_text(layers_result_name(&source->layers[i]), layers_result_name(model)))
            return true;
    return false;
}

/* From the model, machine and options that differ between results; "" if none does. */
static void name_of(const struct plot_source *source, const struct layers_result *model, char *to)
{
    bool models = false, machines = false, batches = false, gpu = false, threads = false;
    struct text name = {0};
    for (size_t i = 0; i < source->layer_count; i++) {
        const struct layers_result *other = &source->layers[i];
        models = models || !is_same_model(other, model);
        machines = machines || !same_text(other->hardware_label, model->hardware_label);
        batches = batches || !is_same_number(other->batch, model->batch);
        gpu = gpu || !is_same_number(other->gpu_layers, model->gpu_layers);
        threads = threads || !is_same_number(other->threads, model->threads);
    }
    if (models)
        text_addf(&name, ", %s",
                  model->model && name_is_taken(source, model) ? model->model
                                                               : layers_result_name(model));
    if (machines && model->hardware_label)
        text_addf(&name, ", %s", model->hardware_label);
    if (batches && is_known(model->batch))
        text_addf(&name, ", batch %.0f", model->batch);
    if (gpu && is_known(model->gpu_layers))
        text_addf(&name, ", %.0f GPU layers", model->gpu_layers);
    if (threads && is_known(model->threads))
        text_addf(&name, ", %.0f threads", model->threads);
    str_copy(to, FIGURE_TEXT_MAX, name.length ? text_get(&name) + strlen(", ") : "");
    text_release(&name);
}

/* ---- panels ---- */

static void fit_axis(struct figure_panel *panel, const struct extent *extent)
{
    if (extent->max_joules > LINEAR_MAX * extent->min_joules)
        panel->y.log_base = 10;
    else
        panel->y.from_zero = true;
}

static void put_line(const struct plot_source *source, struct figure_panel *panel, size_t first,
                     size_t line, struct points *points)
{
    const struct layers_result *model = &source->layers[first];
    char name[FIGURE_TEXT_MAX], label[FIGURE_TEXT_MAX + 16];
    name_of(source, model, name);
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        /* One model: the colors of the phases as in other plots.  Several: one color each. */
        enum figure_color color = phase == 0 ? FIGURE_ORANGE : FIGURE_BLUE;
        if (name[0])
            color = (enum figure_color)(line % FIGURE_INK);
        points->count = 0;
        for (size_t i = first; i < source->layer_count; i++)
            for (size_t s = 0; s < source->layers[i].setting_count; s++) {
                const struct result_setting *setting = &source->layers[i].settings[s];
                if (is_one_line(&source->layers[i], model) && in_phase(setting, phase))
                    add_point(points, setting->prompt_tokens, setting);
            }
        if (!points->count)
            continue;
        chars_format(label, "%.200s%s%s", name, name[0] ? ", " : "", RESULT_PHASE[phase]);
        struct figure_series *drawn = figure_series(panel, FIGURE_LINE, color, "");
        struct figure_series *marks = figure_series(panel, FIGURE_ERRORS_Y, color, label);
        drawn->round = marks->round = (unsigned)(2 * (line / FIGURE_INK) + (name[0] ? phase : 0));
        figure_points(drawn, marks, points->items, points->count);
    }
}

static void put_prompts(const struct plot_source *source, const struct extent *extent,
                        struct figure *figure, struct points *points)
{
    struct figure_panel *panel = figure_panel(figure, "prompt (tokens)", "energy ({J} per token)");
    size_t lines = 0;
    panel->x.log_base = 2;
    fit_axis(panel, extent);
    for (size_t i = 0; i < source->layer_count; i++) {
        bool before = false;
        for (size_t j = 0; j < i && !before; j++)
            before = is_one_line(&source->layers[j], &source->layers[i]);
        if (!before)
            put_line(source, panel, i, lines++, points);
    }
}

static const struct result_setting *setting_at(const struct layers_result *model, size_t phase,
                                               double prompt)
{
    for (size_t s = 0; s < model->setting_count; s++)
        if (in_phase(&model->settings[s], phase) && model->settings[s].prompt_tokens == prompt)
            return &model->settings[s];
    return NULL;
}

/* The longest prompt that every model of known size has in this phase; 0: none. */
static double common_prompt(const struct plot_source *source, size_t phase)
{
    double longest = 0;
    for (size_t i = 0; i < source->layer_count; i++)
        for (size_t s = 0; s < source->layers[i].setting_count; s++) {
            double prompt = source->layers[i].settings[s].prompt_tokens;
            bool common = prompt > longest;
            for (size_t j = 0; j < source->layer_count && common; j++)
                common = !(source->layers[j].parameters > 0) ||
                         setting_at(&source->layers[j], phase, prompt);
            longest = common ? prompt : longest;
        }
    return longest;
}

/* At one prompt length, since energy per token depends on it. */
static void put_sizes(const struct plot_source *source, const struct extent *extent,
                      struct figure *figure, struct points *points)
{
    bool all_same = true;
    bool billions = extent->max_size >= 1e9;
    double unit = billions ? 1e9 : 1e6;
    struct figure_panel *panel =
        figure_panel(figure, billions ? "parameters (billions)" : "parameters (millions)",
                     "energy ({J} per token)");
    panel->x.log_base = 10;
    fit_axis(panel, extent);
    for (size_t i = 1; i < source->layer_count; i++)
        all_same = all_same && same_setup(&source->layers[i], &source->layers[0]);
    for (size_t phase = 0; phase < RESULT_PHASES; phase++) {
        enum figure_color color = phase == 0 ? FIGURE_ORANGE : FIGURE_BLUE;
        double prompt = common_prompt(source, phase);
        char label[64], name[FIGURE_TEXT_MAX];
        points->count = 0;
        for (size_t i = 0; i < source->layer_count && prompt > 0; i++) {
            const struct layers_result *model = &source->layers[i];
            if (!(model->parameters > 0))
                continue;
            add_point(points, model->parameters / unit, setting_at(model, phase, prompt));
            name_of(source, model, name);
            if (phase == 1 || common_prompt(source, 1) == 0) /* once per model */
                figure_label(panel, model->parameters / unit, points->items[points->count - 1].y,
                             true, name);
        }
        if (!points->count)
            continue;
        chars_format(label, "%s, prompt of %.0f tokens", RESULT_PHASE[phase], prompt);
        struct figure_series *line = all_same ? figure_series(panel, FIGURE_LINE, color, "") : NULL;
        figure_points(line, figure_series(panel, FIGURE_ERRORS_Y, color, label), points->items,
                      points->count);
    }
}

/* ---- the plot ---- */

static void put_heading(const struct plot_source *source, const struct extent *extent,
                        struct figure *figure)
{
    char name[FIGURE_TEXT_MAX];
    name_of(source, &source->layers[0], name);
    chars_format(figure->title, "Energy per token against prompt length%s%s%.160s",
                 extent->min_size < extent->max_size ? " and model size" : "", name[0] ? "" : ": ",
                 name[0] ? "" : layers_result_name(&source->layers[0]));
    const char *energy = "measured";
    if (extent->estimated > 0)
        energy = extent->estimated < extent->models ? "measured or estimated" : "estimated";
    chars_format(figure->note, "%zu result%s, energy %s; bars: ±", extent->models,
                 str_plural(extent->models), energy);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    struct extent extent = extent_of(source);
    struct points points = {.items = xcalloc(extent.settings + 1, sizeof *points.items)};
    enum err err = ERR_OK;
    bool sizes = extent.min_size < extent.max_size;
    bool prompts = extent.min_prompt < extent.max_prompt;
    if (!extent.known)
        err = err_set(why, ERR_NO_DATA,
                      "the energy per token of no phase and prompt length is known");
    else if (!err && !prompts && !sizes)
        err = err_set(
            why, ERR_NO_DATA,
            "one prompt length (%.0f tokens) and one model size: give results of other models, or "
            "measure several lengths (`ipw layers --prompt-tokens 32,128,512`)",
            extent.min_prompt);
    if (!err) {
        put_heading(source, &extent, figure);
        if (prompts)
            put_prompts(source, &extent, figure, &points);
        if (sizes)
            put_sizes(source, &extent, figure, &points);
        figure->height = prompts && sizes ? 900 : 500;
    }
    free(points.items);
    return err;
}

const struct plot_driver plot_layer_scaling = {
    .name = "layer_scaling",
    .summary = "results of `ipw layers`: energy per token against prompt length and model size",
    .of = PLOT_OF_ALL_LAYERS,
    .draw = draw,
};
