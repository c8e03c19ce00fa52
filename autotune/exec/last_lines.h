/* The last lines of a trial's log, which usually say why it failed. The program may have replaced the file by anything,
 * so it is read with care. */
#ifndef PLIM_EXEC_LAST_LINES_H
#define PLIM_EXEC_LAST_LINES_H

#include <stddef.h>

/* Calls `show` with each of the last lines, in order, as a terminal would show it: only the text after the last
 * carriage return, tabs as blanks. Other control characters remain (use plim_text_show()). */
void plim_last_lines(const char *folder, const char *name, void (*show)(void *user, const char *line), void *user);

/* Writes the line that names the error to `out`: the last one with a Python exception and its text ("RuntimeError:
 * ..."), followed by the next line if it ends with a colon; otherwise the last line with a letter; "" if there is none.
 * It is safe to print and has no full stop at its end. */
void plim_last_error(const char *folder, const char *name, char *out, size_t size);

#endif
