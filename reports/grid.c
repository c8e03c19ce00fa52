#include "grid.h"
#include "chart.h"
#include "autotune/base/text.h"

/* --- filling ---------------------------------------------------------------------------------- */

void plim_grid_column(struct plim_grid *grid, const char *title, bool is_number)
{
    if (grid->columns == PLIM_GRID_COLUMNS) return;
    grid->column[grid->columns].title = title;
    grid->column[grid->columns++].is_number = is_number;
}

void plim_grid_row(struct plim_grid *grid, bool stands_out)
{
    const struct plim_grid_row row = {.stands_out = stands_out};
    if (PLIM_ARRAY_PUSH(&grid->rows, row) != PLIM_OK) grid->failed = true;
}

/* As it may be shown: names come from outside. */
static char *copy(struct plim_grid *grid, const char *text)
{
    char shown[1024], *own = strdup(plim_text_show(text, shown, sizeof(shown)));
    if (!own) grid->failed = true;
    return own;
}

static struct plim_grid_row *last_row(struct plim_grid *grid)
{
    return grid->failed || !grid->rows.count ? NULL : &grid->rows.items[grid->rows.count - 1];
}

void plim_grid_cell(struct plim_grid *grid, const char *text)
{
    struct plim_grid_row *row = last_row(grid);
    if (row && row->count < grid->columns) row->cells[row->count++] = copy(grid, text);
}

void plim_grid_note(struct plim_grid *grid, const char *text)
{
    struct plim_grid_row *row = last_row(grid);
    if (row && !row->note) row->note = copy(grid, text);
}

void plim_grid_finish(struct plim_grid *grid)
{
    if (!grid) return;
    for (size_t i = 0; i < grid->rows.count; i++) {
        for (size_t c = 0; c < grid->rows.items[i].count; c++) free(grid->rows.items[i].cells[c]);
        free(grid->rows.items[i].note);
    }
    PLIM_ARRAY_FINISH(&grid->rows);
}

/* --- on a page -------------------------------------------------------------------------------- */

enum { BETWEEN = 2, NEXT_LINE = 4 };

struct layout {
    int width[PLIM_GRID_COLUMNS];
    bool starts_line[PLIM_GRID_COLUMNS];
};

static const char *cell_text(const char *cell)
{
    return cell ? cell : "";
}

static struct layout lay_out(const struct plim_grid *grid, const struct plim_page *page)
{
    struct layout out = {{0}, {0}};
    int used = 0;
    for (size_t c = 0; c < grid->columns; c++) {
        out.width[c] = plim_page_length(grid->column[c].title);
        for (size_t i = 0; i < grid->rows.count; i++) {
            int length = plim_page_length(cell_text(grid->rows.items[i].cells[c]));
            if (length > out.width[c]) out.width[c] = length;
        }
        out.starts_line[c] = c && used + BETWEEN + out.width[c] > page->width;
        used = (out.starts_line[c] ? NEXT_LINE : c ? used + BETWEEN : 0) + out.width[c];
    }
    return out;
}

static void set_cell(struct plim_page *page, const struct plim_grid *grid,
                     const struct layout *layout, size_t c, const char *text, bool is_last)
{
    int blanks = layout->width[c] - plim_page_length(text);
    if (layout->starts_line[c]) fprintf(page->file, "\n%*s", NEXT_LINE, "");
    else if (c) fprintf(page->file, "%*s", BETWEEN, "");
    if (grid->column[c].is_number) plim_page_repeat(page, ' ', blanks);
    fputs(text, page->file);
    bool ends_line = is_last || (c + 1 < grid->columns && layout->starts_line[c + 1]);
    if (!grid->column[c].is_number && !ends_line) plim_page_repeat(page, ' ', blanks);
}

/* Behind the cells where there is room for a good part of it, else in lines of its own. */
static void set_note(struct plim_page *page, const struct layout *layout, size_t cells,
                     const char *note)
{
    char first[PLIM_PAGE_MOST + 1];
    int used = 0;
    for (size_t c = 0; c < cells; c++)
        used = (layout->starts_line[c] ? NEXT_LINE : c ? used + BETWEEN : 0) + layout->width[c];
    bool behind = used + BETWEEN + plim_page_length(note) <= page->width;
    if (behind) {
        fprintf(page->file, "%*s%s\n", BETWEEN, "", note);
        return;
    }
    snprintf(first, sizeof(first), "%*s", NEXT_LINE, "");
    fputc('\n', page->file);
    plim_page_wrapped(page, first, note);
}

static void set_row(struct plim_page *page, const struct plim_grid *grid,
                    const struct layout *layout, const struct plim_grid_row *row)
{
    if (row->stands_out) fputs(page->bold, page->file);
    for (size_t c = 0; c < row->count; c++)
        set_cell(page, grid, layout, c, cell_text(row->cells[c]),
                 !row->note && c + 1 == row->count);
    if (row->note) set_note(page, layout, row->count, row->note);
    if (row->stands_out) fputs(page->plain, page->file);
    if (!row->note) fputc('\n', page->file);
}

void plim_grid_set(const struct plim_grid *grid, struct plim_page *page)
{
    const struct layout layout = lay_out(grid, page);
    fputs(page->bold, page->file);
    for (size_t c = 0; c < grid->columns; c++)
        set_cell(page, grid, &layout, c, grid->column[c].title, c + 1 == grid->columns);
    fprintf(page->file, "%s\n", page->plain);
    for (size_t i = 0; i < grid->rows.count; i++) set_row(page, grid, &layout, &grid->rows.items[i]);
}

/* --- as Markdown ------------------------------------------------------------------------------ */

void plim_markdown_text(const char *text, FILE *file)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strchr("\\`*_[]<>|#&~", c)) fputc('\\', file);
        fputc(c < 0x20 || c == 0x7F ? ' ' : c, file);
    }
}

void plim_grid_markdown(const struct plim_grid *grid, FILE *file)
{
    for (size_t c = 0; c < grid->columns; c++) {
        fputs(c ? " | " : "| ", file);
        plim_markdown_text(grid->column[c].title, file);
    }
    fputs(" |\n", file);
    for (size_t c = 0; c < grid->columns; c++)
        fputs(grid->column[c].is_number ? "|---:" : "|---", file);
    fputs("|\n", file);
    for (size_t i = 0; i < grid->rows.count; i++) {
        const struct plim_grid_row *row = &grid->rows.items[i];
        for (size_t c = 0; c < grid->columns; c++) {
            const char *text = c == row->count && row->note ? row->note : cell_text(row->cells[c]);
            fputs(c ? " | " : "| ", file);
            plim_markdown_text(text, file);
        }
        fputs(" |\n", file);
    }
}

/* --- as HTML ---------------------------------------------------------------------------------- */

static void html_cell(FILE *file, const char *tag, bool is_number, const char *text)
{
    fprintf(file, "<%s%s>", tag, is_number ? " class=\"n\"" : "");
    plim_xml_text(text, file);
    fprintf(file, "</%s>", tag);
}

void plim_grid_html(const struct plim_grid *grid, FILE *file)
{
    fputs("<table class=\"sort\">\n<thead><tr>", file);
    for (size_t c = 0; c < grid->columns; c++)
        html_cell(file, "th", grid->column[c].is_number, grid->column[c].title);
    fputs("</tr></thead>\n<tbody>\n", file);
    for (size_t i = 0; i < grid->rows.count; i++) {
        const struct plim_grid_row *row = &grid->rows.items[i];
        fprintf(file, "<tr%s>", row->stands_out ? " class=\"best\"" : "");
        for (size_t c = 0; c < row->count; c++)
            html_cell(file, "td", grid->column[c].is_number, cell_text(row->cells[c]));
        if (row->note && row->count < grid->columns) {
            fprintf(file, "<td class=\"note\" colspan=\"%zu\">", grid->columns - row->count);
            plim_xml_text(row->note, file);
            fputs("</td>", file);
        }
        fputs("</tr>\n", file);
    }
    fputs("</tbody>\n</table>\n", file);
}
