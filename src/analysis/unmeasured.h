/* Kinds of data that people may ask analyses and plots of, and that nothing here measures yet.
 * Owns nothing. */
#ifndef IPW_ANALYSIS_UNMEASURED_H
#define IPW_ANALYSIS_UNMEASURED_H

/* What to say of such a name: that no data of the kind exist yet; NULL for any other name. */
const char *unmeasured_kind(const char *name);

#endif
