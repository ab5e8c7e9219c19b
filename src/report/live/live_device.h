/* A device (or the total) in the full-screen view, at several sizes.  Private to the view. */
#ifndef IPW_REPORT_LIVE_DEVICE_H
#define IPW_REPORT_LIVE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "report/live/screen.h"

struct live;
struct live_view;
struct reading;
struct energy;

/* Where figures begin, and how wide the ones left of a curve are. */
enum { LIVE_INDENT = 2, LIVE_GUTTER = 13 };

struct live_frame {
    struct screen screen;
    const struct live *live;
    const struct reading *reading;
    const struct live_view *view;
};

struct live_layout {
    unsigned graph_rows; /* 0: one line a device */
    bool gaps, vitals;
};

/* Device i, and the lines that it takes. */
unsigned live_device_height(const struct reading *reading, size_t i,
                            const struct live_layout *layout);
void live_device(struct live_frame *frame, size_t i, const struct live_layout *layout);

/* The total: in one line like the devices when `compact`. */
void live_total(struct live_frame *frame, bool compact);

#endif
