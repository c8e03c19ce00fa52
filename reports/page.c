#include "page.h"
#include "autotune/base/text.h"

struct plim_page plim_page_on(FILE *file, const struct plim_style *style)
{
    bool color = style && style->color;
    int width = style && style->width ? style->width : PLIM_PAGE_WIDTH;
    if (width < PLIM_PAGE_LEAST) width = PLIM_PAGE_LEAST;
    if (width > PLIM_PAGE_MOST) width = PLIM_PAGE_MOST;
    return (struct plim_page){.file = file,
                              .width = width,
                              .bold = color ? "\033[1m" : "",
                              .alarm = color ? "\033[1;31m" : "",
                              .plain = color ? "\033[0m" : ""};
}

void plim_page_heading(struct plim_page *page, const char *text)
{
    fprintf(page->file, "\n%s%s%s\n", page->bold, text, page->plain);
}

/* Bytes of `text` that make up to `room` characters. */
static size_t bytes_within(const char *text, int room)
{
    size_t bytes = 0;
    for (; text[bytes]; bytes++)
        if ((text[bytes] & 0xC0) != 0x80 && room-- == 0) break;
    return bytes;
}

/* Where a line of so many bytes is best broken: at a blank, or behind a comma. */
static size_t break_within(const char *text, size_t most)
{
    size_t blank = most, comma = most - 1;
    while (blank > 0 && text[blank] != ' ') blank--;
    if (blank) return blank;
    while (comma > 0 && text[comma - 1] != ',') comma--;
    return comma ? comma : most;
}

void plim_page_continue(struct plim_page *page, int column, int indent, const char *from)
{
    char shown[4096]; /* names in it come from outside */
    const char *text = plim_text_show(from, shown, sizeof(shown));
    do {
        size_t most = bytes_within(text, page->width - column);
        size_t length = text[most] ? break_within(text, most) : most;
        fprintf(page->file, "%.*s\n", (int)length, text);
        text += length + (text[length] == ' ');
        column = indent;
        if (*text) fprintf(page->file, "%*s", indent, "");
    } while (*text);
}

void plim_page_wrapped(struct plim_page *page, const char *first, const char *text)
{
    int indent = plim_page_length(first);
    fputs(first, page->file);
    plim_page_continue(page, indent, indent, text);
}

void plim_page_repeat(struct plim_page *page, char c, int times)
{
    while (times-- > 0) fputc(c, page->file);
}

int plim_page_share(double part, double whole, int width)
{
    double share = whole > 0 ? part / whole : 1;
    return share >= 1 ? width : share <= 0 ? 0 : (int)(share * width + 0.5);
}

int plim_page_length(const char *text)
{
    int length = 0;
    for (; *text; text++) length += (*text & 0xC0) != 0x80;
    return length;
}
