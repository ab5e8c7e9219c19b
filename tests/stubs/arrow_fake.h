/* Replaces the reader of Arrow files: a "file" is JSON lines, so that a test can write one by hand.
 * A test that includes this uses it instead of src/port/arrow_read.c; the line "broken" is where a
 * file is truncated. */
#ifndef TESTS_STUBS_ARROW_FAKE_H
#define TESTS_STUBS_ARROW_FAKE_H

/* The number of open readers; referencing it also links the fake into the program. */
int arrow_fake_open_count(void);

#endif
