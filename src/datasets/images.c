/* A folder of images, for classification or detection. */
#include "datasets/dataset.h"
#include "datasets/media_folder.h"
#include "datasets/row_feed.h"

extern const struct dataset_driver dataset_images;

static enum err images_open(const struct dataset_config *config, struct dataset *out,
                            struct error *why)
{
    return media_folder_open(MEDIA_IMAGES, config, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "DIR", "the folder; without labels, the names of its subfolders are labels"},
    {"labels", "FILE", "CSV with the columns file and label (labels.csv of the folder)"},
    {"annotations", "FILE", "boxes in COCO's JSON format (annotations.json of the folder)"},
    ROW_ORDER_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_images = {
    .name = "images",
    .summary = "a folder of PNG or JPEG images with labels or boxes",
    .params = PARAMS,
    .has_media = true,
    .open = images_open,
    .next = row_feed_next,
    .close = row_feed_close,
};
