#include "graph/decoder.h"

static const struct {
    const char *name;
    const char *words;
} COMPONENTS[DECODER_COMPONENT_COUNT] = {
#define DECODER_COMPONENT(constant, name, words) [DECODER_##constant] = {name, words},
#include "graph/decoder_components.def"
#undef DECODER_COMPONENT
};

const char *decoder_component_name(enum decoder_component component)
{
    return (unsigned)component < DECODER_COMPONENT_COUNT ? COMPONENTS[component].name : "unknown";
}

const char *decoder_component_words(enum decoder_component component)
{
    return (unsigned)component < DECODER_COMPONENT_COUNT ? COMPONENTS[component].words : "unknown";
}
