#include "report/live/reading_bar.h"

#include <string.h>

#include "core/text.h"
#include "runner/profile/profile.h"

#define PATIENCE NS_PER_S

enum { MB = 1000000 };

void reading_bar_init(struct reading_bar *reading, const char *command, bool utf8, unsigned columns)
{
    *reading = (struct reading_bar){0};
    progress_init(&reading->bar, command, true, utf8, columns, 0);
}

/* Another file, or the same from its beginning: its rate is its own. */
static void begin(struct reading_bar *reading, const char *path, nanos now)
{
    const char *slash = strrchr(path, '/');
    str_copy(reading->path, sizeof reading->path, path);
    str_format(reading->phase, sizeof reading->phase, "reading %.60s (MB)",
               slash ? slash + 1 : path);
    reading->began = now;
    reading->first = reading->first ? reading->first : now;
}

void reading_bar_tell(struct reading_bar *reading, const char *path, uint64_t done, uint64_t all,
                      nanos now, struct text *out)
{
    if (strcmp(reading->path, path) != 0 || done < reading->before)
        begin(reading, path, now);
    reading->before = done;
    if (done >= all)
        reading_bar_wipe(reading, out);
    else if (now - reading->first >= PATIENCE)
        progress_draw(&reading->bar,
                      &(struct profile_progress){.phase = reading->phase,
                                                 .done = done / MB,
                                                 .total = (int64_t)(all / MB),
                                                 .elapsed_s = seconds(now - reading->began),
                                                 .watts = UNKNOWN,
                                                 .joules_per_token = UNKNOWN,
                                                 .output_tokens_per_s = UNKNOWN},
                      now, out);
}

void reading_bar_wipe(struct reading_bar *reading, struct text *out)
{
    progress_clear(&reading->bar, out);
}
