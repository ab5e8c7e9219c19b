#include "runner/layers/work.h"

#include "core/text.h"
#include "graph/decoder_cost.h"
#include "graph/gguf.h"

void work_read(struct layers_model *model)
{
    struct gguf gguf;
    struct error why = {0};
    if (gguf_open(model->path, &gguf, &why)) {
        str_copy(model->no_decoder, sizeof model->no_decoder, why.text);
        return;
    }
    model->has_decoder = decoder_read(&gguf, &model->decoder, &why) == ERR_OK;
    if (!model->has_decoder)
        str_copy(model->no_decoder, sizeof model->no_decoder, why.text);
    gguf_close(&gguf);
}

static void add_step(struct layers_model *model, enum layers_phase phase,
                     const struct decoder_step *step)
{
    for (unsigned c = 0; c < DECODER_COMPONENT_COUNT; c++) {
        struct decoder_cost cost =
            decoder_cost_component(&model->decoder, step, (enum decoder_component)c);
        model->work[phase][c][0] += decoder_cost_flops(&cost);
        model->work[phase][c][1] += decoder_cost_bytes(&cost);
    }
}

/* A prompt goes through in graphs of at most ubatch tokens, all sequences together. */
static void add_prefill(struct layers_model *model, unsigned prompt, unsigned batch,
                        uint32_t ubatch)
{
    unsigned most = ubatch / batch ? ubatch / batch : 1;
    for (unsigned done = 0; done < prompt;) {
        unsigned part = prompt - done < most ? prompt - done : most;
        bool last = done + part == prompt;
        struct decoder_step step = {.tokens = part,
                                    .before = done,
                                    .sequences = batch,
                                    .logits = last,
                                    .prunes_last = true};
        add_step(model, LAYERS_PREFILL, &step);
        done += part;
    }
}

void work_count(struct layers_model *model, unsigned batch, unsigned generate, uint32_t ubatch)
{
    for (unsigned phase = 0; phase < LAYERS_PHASES; phase++)
        for (unsigned c = 0; c < LAYERS_COMPONENTS; c++)
            for (unsigned i = 0; i < 2; i++)
                model->work[phase][c][i] =
                    model->has_decoder && c < DECODER_COMPONENT_COUNT ? 0 : UNKNOWN;
    for (size_t s = 0; model->has_decoder && s < model->setting_count; s++) {
        const struct layers_setting *setting = &model->settings[s];
        if (setting->phase == LAYERS_PREFILL) {
            add_prefill(model, setting->prompt, batch, ubatch);
            continue;
        }
        for (unsigned i = 0; i < generate; i++) {
            struct decoder_step step = {.tokens = 1,
                                        .before = setting->prompt + i,
                                        .sequences = batch,
                                        .logits = 1,
                                        .prunes_last = true};
            add_step(model, LAYERS_DECODE, &step);
        }
    }
}
