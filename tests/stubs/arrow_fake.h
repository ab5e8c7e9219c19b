/* Stands in for the reader of Arrow files: a "file" is JSON lines, so that a test can write one by
 * hand.  A test that includes this uses it in place of src/port/arrow_read.c; the line "broken" is a
 * file that breaks off there. */
#ifndef TESTS_STUBS_ARROW_FAKE_H
#define TESTS_STUBS_ARROW_FAKE_H

/* Readers that are open; naming it also brings the fake into the program. */
int arrow_fake_open_count(void);

#endif
