/* Makes a smaller GGUF file of one in f16:  quantize q8_0|q4_0 FROM TO
 *
 * Every matrix becomes blocks of 32 numbers with one scale, by the plain rule of the format (nothing
 * is looked for, nothing is mixed), so the same file comes out on every machine.  The build makes the
 * shipped models' smaller precisions with it, which the repository therefore need not hold. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are written as they lie in memory, which must be little-endian"
#endif

enum { BLOCK = 32, TENSORS_MAX = 1024, DIMENSIONS_MAX = 4, ALIGNMENT = 32 };

/* Numbers of the format. */
enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8 };
enum { VALUE_UINT32 = 4, VALUE_STRING = 8, VALUE_ARRAY = 9 };

static const unsigned VALUE_SIZES[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct precision {
    const char *name;
    uint32_t type, file_type; /* of a tensor, of the file as a whole */
    size_t block_bytes;
    void (*pack)(const float *numbers, unsigned char *out);
};

struct tensor {
    const unsigned char *info; /* in the source: its name, and what follows */
    uint64_t name_bytes;       /* with the length before it */
    uint32_t dimensions, type;
    uint64_t extents[DIMENSIONS_MAX];
    uint64_t offset; /* in the source's data */
};

/* The source, and how far it is read. */
struct reader {
    unsigned char *bytes;
    size_t size, at;
};

static _Noreturn void fail(const char *what, const char *where)
{
    fprintf(stderr, "quantize: %s: %s\n", where, what);
    exit(1);
}

/* ---- numbers ---- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16, exponent = half >> 10 & 31U;
    uint32_t fraction = half & 0x3FFU;
    if (exponent == 0) {
        float small = (float)fraction * 0x1p-24f;
        return sign ? -small : small;
    }
    if (exponent == 31)
        return float_of_bits(sign | 0x7F800000U | fraction << 13);
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Rounded to the nearest, to the even one of two.  Our scales are far from what a half cannot hold. */
static uint16_t half_of_float(float value)
{
    uint16_t sign = signbit(value) ? 0x8000U : 0;
    float size = fabsf(value);
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (uint16_t)nearbyintf(size * 0x1p24f));
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits += 0xFFFU + (bits >> 13 & 1U);
    uint32_t half = (bits >> 13) - (112U << 10);
    return (uint16_t)(sign | (half < 0x7C00U ? half : 0x7C00U));
}

static void put_half(unsigned char *out, float value)
{
    uint16_t half = half_of_float(value);
    memcpy(out, &half, sizeof half);
}

static void pack_q8_0(const float *numbers, unsigned char *out)
{
    float most = 0;
    for (int i = 0; i < BLOCK; i++)
        most = fmaxf(most, fabsf(numbers[i]));
    float scale = most / 127, inverse = scale != 0 ? 1 / scale : 0;
    put_half(out, scale);
    for (int i = 0; i < BLOCK; i++)
        out[2 + i] = (unsigned char)(signed char)roundf(numbers[i] * inverse);
}

/* The number of the greatest size becomes -8, whatever its sign. */
static void pack_q4_0(const float *numbers, unsigned char *out)
{
    float most = 0;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(numbers[i]) > fabsf(most))
            most = numbers[i];
    float scale = most / -8, inverse = scale != 0 ? 1 / scale : 0;
    put_half(out, scale);
    unsigned char levels[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        /* Two statements: a fused multiplication and addition would round another way. */
        float scaled = numbers[i] * inverse;
        float level = scaled + 8.5f;
        levels[i] = (unsigned char)(level < 15 ? level : 15);
    }
    for (int i = 0; i < BLOCK / 2; i++)
        out[2 + i] = (unsigned char)(levels[i] | levels[i + BLOCK / 2] << 4);
}

static const struct precision PRECISIONS[] = {
    {"q8_0", TYPE_Q8_0, 7, 2 + BLOCK, pack_q8_0},
    {"q4_0", TYPE_Q4_0, 2, 2 + BLOCK / 2, pack_q4_0},
};

/* ---- reading ---- */

static struct reader read_whole(const char *path)
{
    struct reader out = {0};
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("cannot be read", path);
    long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        fail("cannot be read", path);
    out.size = (size_t)size;
    out.bytes = malloc(out.size + 1);
    if (!out.bytes || fread(out.bytes, 1, out.size, file) != out.size)
        fail("cannot be read", path);
    fclose(file);
    return out;
}

static unsigned char *take(struct reader *reader, uint64_t count)
{
    if (count > reader->size - reader->at)
        fail("ends too early", "source");
    unsigned char *at = reader->bytes + reader->at;
    reader->at += (size_t)count;
    return at;
}

static uint32_t take_u32(struct reader *reader)
{
    uint32_t value;
    memcpy(&value, take(reader, sizeof value), sizeof value);
    return value;
}

static uint64_t take_u64(struct reader *reader)
{
    uint64_t value;
    memcpy(&value, take(reader, sizeof value), sizeof value);
    return value;
}

static void skip_value(struct reader *reader, uint32_t type)
{
    if (type == VALUE_STRING) {
        take(reader, take_u64(reader));
    } else if (type == VALUE_ARRAY) {
        uint32_t of = take_u32(reader);
        for (uint64_t left = take_u64(reader); left; left--)
            skip_value(reader, of);
    } else if (type < sizeof VALUE_SIZES / sizeof *VALUE_SIZES) {
        take(reader, VALUE_SIZES[type]);
    } else {
        fail("has a value of an unknown type", "source");
    }
}

/* Goes over the facts of the file; what it says of its own precision is set on the way. */
static void pass_facts(struct reader *reader, uint64_t count, uint32_t file_type)
{
    static const char KEY[] = "general.file_type";
    for (; count; count--) {
        uint64_t length = take_u64(reader);
        const unsigned char *key = take(reader, length);
        uint32_t type = take_u32(reader);
        if (type == VALUE_UINT32 && length == strlen(KEY) && memcmp(key, KEY, length) == 0)
            memcpy(take(reader, sizeof file_type), &file_type, sizeof file_type);
        else
            skip_value(reader, type);
    }
}

static struct tensor take_tensor(struct reader *reader)
{
    struct tensor out = {.info = reader->bytes + reader->at};
    uint64_t length = take_u64(reader);
    take(reader, length);
    out.name_bytes = sizeof length + length;
    out.dimensions = take_u32(reader);
    if (out.dimensions > DIMENSIONS_MAX)
        fail("has a tensor of too many dimensions", "source");
    for (uint32_t i = 0; i < out.dimensions; i++)
        out.extents[i] = take_u64(reader);
    out.type = take_u32(reader);
    out.offset = take_u64(reader);
    return out;
}

static size_t padded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- writing ---- */

static uint64_t tensor_count(const struct tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->dimensions; i++)
        count *= tensor->extents[i];
    return count;
}

static bool is_packed(const struct tensor *tensor)
{
    return tensor->dimensions == 2 && tensor->type == TYPE_F16 && tensor->extents[0] % BLOCK == 0;
}

static size_t tensor_bytes(const struct tensor *tensor, const struct precision *precision)
{
    size_t count = (size_t)tensor_count(tensor);
    if (is_packed(tensor))
        return count / BLOCK * precision->block_bytes;
    return count * (tensor->type == TYPE_F16 ? 2 : 4);
}

static void put(FILE *file, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, file) != size)
        fail("cannot be written", "target");
}

static void put_padding(FILE *file, size_t written)
{
    static const unsigned char ZEROS[ALIGNMENT];
    put(file, ZEROS, padded(written) - written);
}

static size_t put_info(FILE *file, const struct tensor *tensor, const struct precision *precision,
                       uint64_t offset)
{
    uint32_t type = is_packed(tensor) ? precision->type : tensor->type;
    size_t extents = tensor->dimensions * sizeof *tensor->extents;
    put(file, tensor->info, (size_t)tensor->name_bytes);
    put(file, &tensor->dimensions, sizeof tensor->dimensions);
    put(file, tensor->extents, extents);
    put(file, &type, sizeof type);
    put(file, &offset, sizeof offset);
    return (size_t)tensor->name_bytes + sizeof tensor->dimensions + extents + sizeof type +
           sizeof offset;
}

static void put_blocks(FILE *file, const unsigned char *halves, uint64_t count,
                       const struct precision *precision)
{
    for (uint64_t block = 0; block < count / BLOCK; block++) {
        unsigned char packed[2 + BLOCK];
        float numbers[BLOCK];
        for (int i = 0; i < BLOCK; i++, halves += sizeof(uint16_t)) {
            uint16_t half;
            memcpy(&half, halves, sizeof half);
            numbers[i] = float_of_half(half);
        }
        precision->pack(numbers, packed);
        put(file, packed, precision->block_bytes);
    }
}

static void put_tensor(FILE *file, struct reader *data, const struct tensor *tensor,
                       const struct precision *precision)
{
    uint64_t count = tensor_count(tensor);
    if (tensor->type != TYPE_F16 && tensor->type != TYPE_F32)
        fail("has a tensor that is neither f16 nor f32", "source");
    if (tensor->offset > data->size)
        fail("ends too early", "source");
    data->at = (size_t)tensor->offset;
    const unsigned char *bytes = take(data, count * (tensor->type == TYPE_F16 ? 2 : 4));
    if (is_packed(tensor))
        put_blocks(file, bytes, count, precision);
    else
        put(file, bytes, tensor_bytes(tensor, precision));
    put_padding(file, tensor_bytes(tensor, precision));
}

static void quantize(struct reader *source, const struct precision *precision, FILE *file)
{
    static struct tensor tensors[TENSORS_MAX];
    if (memcmp(take(source, 4), "GGUF", 4) != 0 || take_u32(source) != 3)
        fail("is no GGUF file of version 3", "source");
    uint64_t count = take_u64(source), facts = take_u64(source);
    if (count > TENSORS_MAX)
        fail("has too many tensors", "source");
    pass_facts(source, facts, precision->file_type);
    size_t written = source->at;
    put(file, source->bytes, written);
    uint64_t offset = 0;
    for (uint64_t i = 0; i < count; i++) {
        tensors[i] = take_tensor(source);
        written += put_info(file, &tensors[i], precision, offset);
        offset += padded(tensor_bytes(&tensors[i], precision));
    }
    put_padding(file, written);
    take(source, padded(source->at) - source->at);
    struct reader data = {source->bytes + source->at, source->size - source->at, 0};
    for (uint64_t i = 0; i < count; i++)
        put_tensor(file, &data, &tensors[i], precision);
}

int main(int argc, char **argv)
{
    const struct precision *precision = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof PRECISIONS / sizeof *PRECISIONS; i++)
        if (strcmp(argv[1], PRECISIONS[i].name) == 0)
            precision = &PRECISIONS[i];
    if (!precision) {
        fprintf(stderr, "usage: quantize q8_0|q4_0 FROM TO\n");
        return 2;
    }
    struct reader source = read_whole(argv[2]);
    FILE *file = fopen(argv[3], "wb");
    if (!file)
        fail("cannot be written", argv[3]);
    quantize(&source, precision, file);
    if (fclose(file) != 0)
        fail("cannot be written", argv[3]);
    free(source.bytes);
    return 0;
}
