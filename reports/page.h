/* A page of text for people: lines of a given width, in a terminal or in a file. */
#ifndef PLIM_REPORTS_PAGE_H
#define PLIM_REPORTS_PAGE_H

#include "writer.h"
#include <stdio.h>

struct plim_page {
    FILE *file;
    int width;                         /* columns */
    const char *bold, *alarm, *plain; /* a terminal's escape sequences; "" elsewhere */
};

/* A page on `file`. A style of NULL is that of a file: no escape sequences, PLIM_PAGE_WIDTH columns. The width
 * is limited to PLIM_PAGE_LEAST .. PLIM_PAGE_MOST, for which the layout is made. */
enum { PLIM_PAGE_LEAST = 60, PLIM_PAGE_WIDTH = 80, PLIM_PAGE_MOST = 200 };
struct plim_page plim_page_on(FILE *file, const struct plim_style *style);

/* An empty line, then a highlighted line. */
void plim_page_heading(struct plim_page *page, const char *text);

/* Text after `first`, with lines broken at blanks and indented alike. */
void plim_page_wrapped(struct plim_page *page, const char *first, const char *text);

/* The same in a line of which `column` columns are filled; `indent` is for the lines below. */
void plim_page_continue(struct plim_page *page, int column, int indent, const char *text);

void plim_page_repeat(struct plim_page *page, char c, int times);

/* The columns of `width` that show `part` of `whole`. */
int plim_page_share(double part, double whole, int width);

/* Characters of a text, as a terminal counts them. */
int plim_page_length(const char *text);

#endif
