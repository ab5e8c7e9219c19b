/* Which characters the fonts here can show: what none has, a picture would show as a large box over
 * its neighbours.  fontconfig's list is asked once a run of the program, and only for characters beyond
 * the scripts that every font for a screen has. */
#ifndef IPW_REPORT_FONTS_H
#define IPW_REPORT_FONTS_H

#include <stddef.h>

struct figure;
struct text;

/* What no font has becomes its number, "[U+1F999]", in every text of the figure, so that names stay
 * different.  The texts as they were go into *kept, which the caller owns, for fonts_restore. */
void fonts_replace(struct figure *figure, struct text *kept);
void fonts_restore(struct figure *figure, const struct text *kept);

#endif
