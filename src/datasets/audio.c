/* A folder of sound, for speech recognition. */
#include "datasets/dataset.h"
#include "datasets/media_folder.h"
#include "datasets/row_feed.h"

extern const struct dataset_driver dataset_audio;

static enum err audio_open(const struct dataset_config *config, struct dataset *out,
                           struct error *why)
{
    return media_folder_open(MEDIA_AUDIO, config, out, why);
}

static const struct param_spec PARAMS[] = {
    {"path", "DIR", "the folder; without labels, NAME.txt has the transcript of NAME.wav"},
    {"labels", "FILE", "CSV with the columns file and text (labels.csv of the folder)"},
    ROW_ORDER_PARAMS,
    {NULL, NULL, NULL},
};

const struct dataset_driver dataset_audio = {
    .name = "audio",
    .summary = "a folder of WAV files with transcripts",
    .params = PARAMS,
    .has_media = true,
    .open = audio_open,
    .next = row_feed_next,
    .close = row_feed_close,
};
