/* A table of texts: filled cell by cell, then written as text on a page, as Markdown, or as HTML.
 *
 *     struct plim_grid grid = {0};
 *     plim_grid_column(&grid, "device", false);
 *     plim_grid_row(&grid, false);
 *     plim_grid_cell(&grid, "T4");
 *
 * Errors: running out of host memory is remembered in `failed`; every call is safe then.
 */
#ifndef PLIM_REPORTS_GRID_H
#define PLIM_REPORTS_GRID_H

#include "page.h"

enum { PLIM_GRID_COLUMNS = 32 };

struct plim_grid_row {
    char *cells[PLIM_GRID_COLUMNS]; /* NULL: empty */
    char *note;                     /* replaces the remaining cells; NULL: none */
    size_t count;
    bool stands_out;
};

struct plim_grid {
    size_t columns;
    struct {
        const char *title; /* the caller's */
        bool is_number;    /* aligned to the right */
    } column[PLIM_GRID_COLUMNS];
    PLIM_ARRAY(struct plim_grid_row) rows;
    bool failed;
};

void plim_grid_column(struct plim_grid *grid, const char *title, bool is_number);
void plim_grid_row(struct plim_grid *grid, bool stands_out);
void plim_grid_cell(struct plim_grid *grid, const char *text); /* of the last row */
void plim_grid_note(struct plim_grid *grid, const char *text); /* of the last row; its end */

/* Columns are as wide as their cells. A row wider than the page continues in a second line. */
void plim_grid_set(const struct plim_grid *grid, struct plim_page *page);

/* As a Markdown table: a note fills the first remaining cell. */
void plim_grid_markdown(const struct plim_grid *grid, FILE *file);

/* As an HTML table whose rows a script may sort: a note fills all remaining cells. */
void plim_grid_html(const struct plim_grid *grid, FILE *file);

/* Writes text in one line, with Markdown's special characters escaped. */
void plim_markdown_text(const char *text, FILE *file);

void plim_grid_finish(struct plim_grid *grid); /* NULL and zeroed are fine */

#endif
