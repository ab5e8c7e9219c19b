#include "support/hardware_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "catalog/hardware_json.h"
#include "support/hardware_paths.h"

#define PUBLISHED "\"evidence\": \"published\", \"source\": \"a datasheet\""
#define DERIVED   "\"evidence\": \"derived\", \"plus_minus\": 0.1, \"source\": \"a formula\""

const char HARDWARE_FILE[] =
    "{\"id\": \"acme-1\", \"name\": \"Acme One 16GB\", \"vendor\": \"Acme\", \"class\": \"gpu\",\n"
    " \"year\": 2024, \"note\": \"made up\", \"aliases\": [\"ACME ONE\", \"one\"],\n"
    " \"matrix\": {\n"
    "  \"bf16\": {\"peak\": {\"value\": 100, \"unit\": \"tflops\", " PUBLISHED "},\n"
    "           \"energy\": {\"value\": 2, \"unit\": \"pj\", " DERIVED "}},\n"
    "  \"int8\": {\"peak\": {\"value\": 200, \"unit\": \"tops\", " PUBLISHED "},\n"
    "           \"energy\": {\"value\": 1, \"unit\": \"pj\", " DERIVED "}}},\n"
    " \"vector\": {\n"
    "  \"fp32\": {\"peak\": {\"value\": 10000, \"unit\": \"gflops\", " PUBLISHED "},\n"
    "           \"energy\": {\"value\": 0.02, \"unit\": \"nj\", " DERIVED "}}},\n"
    " \"memories\": [\n"
    "  {\"name\": \"L2\", \"capacity\": {\"value\": 4, \"unit\": \"mib\", " PUBLISHED "},\n"
    "   \"bandwidth\": {\"value\": 2, \"unit\": \"tb_per_s\", " PUBLISHED "},\n"
    "   \"energy\": {\"value\": 50, \"unit\": \"pj\", " DERIVED "}},\n"
    "  {\"name\": \"HBM\", \"capacity\": {\"value\": 16, \"unit\": \"gib\", " PUBLISHED "},\n"
    "   \"bandwidth\": {\"value\": 1000, \"unit\": \"gb_per_s\", " PUBLISHED "},\n"
    "   \"energy\": {\"value\": 100, \"unit\": \"pj\", " DERIVED "}}],\n"
    " \"power\": {\"limit\": {\"value\": 250, \"unit\": \"w\", " PUBLISHED "},\n"
    "           \"idle\": {\"value\": 50000, \"unit\": \"mw\", \"evidence\": \"measured\",\n"
    "                    \"plus_minus\": 500, \"source\": \"a meter\"}},\n"
    " \"launch\": {\"value\": 4, \"unit\": \"us\", \"evidence\": \"assumed\", \"source\": "
    "\"class\"},\n"
    " \"units\": {\"value\": 80, " PUBLISHED "},\n"
    " \"compute_share\": {\"value\": 0.8, \"evidence\": \"assumed\", \"source\": \"class\"},\n"
    " \"link\": {\"bandwidth\": {\"value\": 300, \"unit\": \"gb_per_s\", " PUBLISHED "}},\n"
    " \"points\": [{\"name\": \"full\", \"source\": \"as it is\"},\n"
    "  {\"name\": \"Half\", \"limit_w\": 150, \"clock_ratio\": 0.5, \"memory_ratio\": 0.75,\n"
    "   \"energy_ratio\": 0.6, \"idle_w\": 40, \"source\": \"a mode\"}]}\n";

void hardware_file_with(const char *old, const char *new, struct text *out)
{
    const char *at = strstr(HARDWARE_FILE, old);
    if (!at) {
        fprintf(stderr, "the hardware file does not contain %s\n", old);
        abort();
    }
    text_clear(out);
    text_add_bytes(out, HARDWARE_FILE, (size_t)(at - HARDWARE_FILE));
    text_add(out, new);
    text_add(out, at + strlen(old));
}

static const char *exercise_hardware(struct hardware *hardware)
{
    struct error why = {0};
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        enum precision precision = (enum precision)i, used;
        double rate = hardware_matmul_flops(hardware, precision, &used);
        if (rate <= 0 || elementwise_flops(hardware, precision) <= 0 ||
            matmul_joules(hardware, precision) <= 0 || elementwise_joules(hardware, precision) <= 0)
            return "a rate or an energy that is not above 0";
        if (hardware_evidence(hardware, precision) >= EVIDENCE_COUNT)
            return "no evidence";
    }
    if (hardware_main_memory(hardware)->bytes_per_s.value <= 0)
        return "no bandwidth";
    if (hardware_check(hardware, &why) && !why.text[0])
        return "an error without words";
    if (hardware->point_count &&
        hardware_at_point(hardware, hardware->points[hardware->point_count - 1].name, &why))
        return "a point that is not found by its name";
    return NULL;
}

const char *hardware_file_exercise(const char *bytes, size_t length)
{
    struct hardware hardware;
    struct error why = {0};
    if (hardware_parse("fuzz", bytes, length, &hardware, &why))
        return why.text[0] ? NULL : "an error without words";
    const char *wrong = exercise_hardware(&hardware);
    hardware_release(&hardware);
    return wrong;
}
