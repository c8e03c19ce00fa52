/* The last lines of what a trial wrote: they mostly say why it failed. The file may be anything, since the program
 * may have put anything in its place. */
#ifndef PLIM_EXEC_LAST_LINES_H
#define PLIM_EXEC_LAST_LINES_H

#include <stddef.h>

/* Calls `show` with each of them, in their order, as a terminal would show it: as last seen where carriage returns
 * wrote it again, tabs as blanks. Other control characters are in it still (plim_text_show()). */
void plim_last_lines(const char *folder, const char *name, void (*show)(void *user, const char *line), void *user);

/* The one that names the error: the last with a Python exception and its text ("RuntimeError: ..."), with the next one
 * behind it where it ends with a colon, else the last with any letter; fit to be shown, without its full stop. "" if
 * there is none. */
void plim_last_error(const char *folder, const char *name, char *out, size_t size);

#endif
