/* The families of the zoo: each builds the graph of one of its names and finishes it; and what they
 * share.  Graphs are the caller's; nothing else is kept. */
#ifndef IPW_GRAPH_ZOO_FAMILY_H
#define IPW_GRAPH_ZOO_FAMILY_H

#include "graph/build.h"
#include "graph/reader.h"

#define ZOO_FAMILY(family)                                                                         \
    enum err zoo_build_##family(const char *name, const struct graph_options *setting,             \
                                struct graph *out, struct error *why)
ZOO_FAMILY(alexnet);
ZOO_FAMILY(bert);
ZOO_FAMILY(clip_text);
ZOO_FAMILY(convnext);
ZOO_FAMILY(decoder);
ZOO_FAMILY(densenet);
ZOO_FAMILY(diffusion);
ZOO_FAMILY(efficientnet);
ZOO_FAMILY(googlenet);
ZOO_FAMILY(gpt2);
ZOO_FAMILY(inception_v3);
ZOO_FAMILY(lraspp);
ZOO_FAMILY(maxvit);
ZOO_FAMILY(mnasnet);
ZOO_FAMILY(mobilenet_v2);
ZOO_FAMILY(mobilenet_v3);
ZOO_FAMILY(recurrent);
ZOO_FAMILY(regnet);
ZOO_FAMILY(resnet);
ZOO_FAMILY(segmentation);
ZOO_FAMILY(shufflenet);
ZOO_FAMILY(squeezenet);
ZOO_FAMILY(swin);
ZOO_FAMILY(vgg);
ZOO_FAMILY(vit);
ZOO_FAMILY(whisper);
ZOO_FAMILY(yolo);
#undef ZOO_FAMILY

/* ---- what they share ---- */

/* The row of a family's table whose first member, a string, is this name. */
const void *zoo_row(const void *rows, size_t row_size, size_t count, const char *name);
#define ZOO_ROW(rows, name) zoo_row(rows, sizeof *(rows), sizeof(rows) / sizeof *(rows), name)

/* A graph with one image coming in: batch x channels x side x side. */
struct build zoo_image(const char *name, const struct graph_options *setting, int64_t channels,
                       struct graph *out, struct error *why, tensor_id *image);
/* Convolution, batch norm and, unless it is GRAPH_VIEW, an activation.  Names are those of torchvision's
 * Conv2dNormActivation: PLACE.0, PLACE.1, PLACE.2. */
tensor_id zoo_conv_norm(struct build *build, const char *place, tensor_id x, struct build_conv conv,
                        enum graph_op activation);
/* Half of the kernel on each side, so that a stride of 1 keeps the size. */
struct build_conv zoo_same(int64_t channels, int32_t kernel, int32_t stride);

/* Nothing happens to what goes through when a trained model is used. */
tensor_id zoo_dropout(struct build *build, const char *name, tensor_id x);
/* Averages of windows that leave `size` x `size`. */
tensor_id zoo_adaptive_pool(struct build *build, const char *name, tensor_id x, int64_t size);

/* The nearest multiple of 8 that is not less than nine tenths, as torchvision rounds channels. */
int64_t zoo_rounded(double channels);

/* Squeeze and excitation: averages of channels through two 1 x 1 convolutions, times x.  Names are
 * PLACE.avgpool, PLACE.fc1 and so on. */
struct zoo_excite {
    int64_t squeezed;
    enum graph_op activation, scale;
};
tensor_id zoo_excite(struct build *build, const char *place, tensor_id x, struct zoo_excite excite);

/* The large MobileNet V3 without its classifier, named "backbone.": its last blocks spread their filters instead
 * of shrinking the image.  *early is what comes out an eighth as large as the image. */
tensor_id zoo_mobilenet_v3_spread(struct build *build, tensor_id x, tensor_id *early);

#endif
