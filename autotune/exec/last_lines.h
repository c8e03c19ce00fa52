/* The last lines of a trial's output: they mostly say why it failed. The file may be anything, since the program
 * may have replaced it. */
#ifndef PLIM_EXEC_LAST_LINES_H
#define PLIM_EXEC_LAST_LINES_H

#include <stddef.h>

/* Calls `show` with each line, in order, as a terminal would show it: the final state where carriage returns
 * overwrite it, tabs as blanks. Other control characters remain (use plim_text_show()). */
void plim_last_lines(const char *folder, const char *name, void (*show)(void *user, const char *line), void *user);

/* The line that names the error: the last one with a Python exception and its text ("RuntimeError: ..."), followed by
 * the next line if it ends with a colon; else the last line with any letter. Safe to show, without its full stop. "" if
 * there is none. */
void plim_last_error(const char *folder, const char *name, char *out, size_t size);

#endif
