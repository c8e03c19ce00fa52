/* The report formats: one const table each, chosen by name or by a file's extension.
 *
 * A new format is one file that defines a `struct plim_writer`, a line in writers[] of
 * writer.c and a line in meson.build. A writer turns a report into text and does no input or
 * output itself, so that a file is never left half written.
 */
#ifndef PLIM_REPORTS_WRITER_H
#define PLIM_REPORTS_WRITER_H

#include "result.h"

/* The price of an hour of a GPU, in the user's unit. */
struct plim_price {
    const char *device; /* as plimsoll devices names it; case does not matter */
    double amount;
};

/* How a report for people looks. Machine formats ignore it. */
struct plim_style {
    bool color; /* ANSI escapes; only for a terminal */
    int width;  /* columns; 0: 80 */
    size_t price_count;
    const struct plim_price *prices; /* for the table of devices */
    bool compares;    /* that table shows each rate relative to the first one */
    bool tells_power; /* and per watt, for GPUs whose power is known */
};

struct plim_writer {
    const char *name;           /* "json" */
    const char *extensions[4];  /* without the dot; NULL ends the list */
    bool draws;                 /* it draws charts, also of a result's timeline */
    /* The report as text: malloc'd, the caller frees it. PLIM_NOMEM is the only failure. */
    enum plim_status (*write)(const struct plim_report *report, const struct plim_style *style,
                              char **text, struct plim_error *err);
    /* Instead of `write`, for an image: its bytes, malloc'd. PLIM_UNSUPPORTED: the drawing program is missing. */
    enum plim_status (*draw)(const struct plim_report *report, char **bytes, size_t *size,
                             struct plim_error *err);
};

extern const struct plim_writer plim_writer_json, plim_writer_yaml, plim_writer_text,
    plim_writer_csv, plim_writer_markdown, plim_writer_html, plim_writer_svg, plim_writer_png;

/* The writer for a file name, by its extension (ignoring case). PLIM_INVALID, with the known
 * extensions, when there is none. */
enum plim_status plim_writer_for_path(const char *path, const struct plim_writer **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
