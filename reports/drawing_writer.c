/* The charts of a report without the rest, one below the other: SVG, and PNG, which librsvg makes of
 * it. */
#include "autotune/base/text_stream.h"
#include "charts.h"
#include "writer.h"
#include <dlfcn.h>
#include <string.h>

enum { WIDTH = 720, BETWEEN = 24, EDGE = 16 };

/* --- SVG -------------------------------------------------------------------------------------- */

struct sheet {
    FILE *file;
    int height;
};

static void add_chart(const struct plim_chart *chart, void *user)
{
    struct sheet *sheet = user;
    fprintf(sheet->file, "<g transform=\"translate(%d %d)\">\n", EDGE, sheet->height);
    sheet->height += plim_chart_draw(chart, WIDTH, sheet->file) + BETWEEN;
    fputs("</g>\n", sheet->file);
}

/* The charts, and how high they are together. */
static enum plim_status draw_charts(const struct plim_report *report, char **charts, int *height)
{
    struct plim_text_stream stream;
    struct sheet sheet = {.file = plim_text_stream_open(&stream), .height = EDGE};
    enum plim_status st = PLIM_OK, closed;
    if (sheet.file && (report->results.count > 1 || report->is_table))
        st = plim_charts_of_table(report, add_chart, &sheet);
    for (size_t i = 0; sheet.file && !st && i < report->results.count && !report->is_table; i++)
        st = plim_charts_of_result(report, &report->results.items[i], add_chart, &sheet);
    *height = sheet.height;
    closed = plim_text_stream_close(&stream, charts);
    return st ? st : closed;
}

static enum plim_status write_svg(const struct plim_report *report, const struct plim_style *style,
                                  char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    char *charts = NULL;
    int height, width = WIDTH + 2 * EDGE;
    (void)style;
    *text = NULL;
    enum plim_status st = draw_charts(report, &charts, &height);
    FILE *file = st ? NULL : plim_text_stream_open(&stream);
    if (file) {
        fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n<style>\n",
                width, height, width, height);
        plim_chart_style(file);
        fprintf(file,
                ".sheet{fill:#ffffff}\n@media (prefers-color-scheme:dark){.sheet{fill:#16181c}}\n"
                "</style>\n<rect class=\"sheet\" width=\"%d\" height=\"%d\"/>\n%s</svg>\n",
                width, height, charts);
        st = plim_text_stream_close(&stream, text);
    }
    free(charts);
    return file && !st ? PLIM_OK : plim_no_memory(err);
}

const struct plim_writer plim_writer_svg = {
    .name = "svg", .extensions = {"svg"}, .draws = true, .write = write_svg};

/* --- PNG -------------------------------------------------------------------------------------- */

/* Of librsvg 2.46 and later, and cairo 1.2 and later; neither is needed for anything else. */
struct rectangle {
    double x, y, width, height;
};

struct rasterizer {
    void *rsvg, *cairo, *objects;
    void *(*handle_new)(const unsigned char *data, size_t size, void **error);
    int (*render)(void *handle, void *cairo, const struct rectangle *viewport, void **error);
    void *(*surface_create)(int format, int width, int height);
    void *(*create)(void *surface);
    int (*write_png)(void *surface, int (*write)(void *, const unsigned char *, unsigned), void *);
    void (*destroy)(void *cairo), (*surface_destroy)(void *surface), (*unref)(void *object);
};

static enum plim_status load_rasterizer(struct rasterizer *r, struct plim_error *err)
{
    *r = (struct rasterizer){.rsvg = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL),
                             .cairo = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL),
                             .objects = dlopen("libgobject-2.0.so.0", RTLD_NOW | RTLD_LOCAL)};
    struct {
        void *library;
        const char *name;
        void *function;
    } functions[] = {{r->rsvg, "rsvg_handle_new_from_data", &r->handle_new},
                     {r->rsvg, "rsvg_handle_render_document", &r->render},
                     {r->cairo, "cairo_image_surface_create", &r->surface_create},
                     {r->cairo, "cairo_create", &r->create},
                     {r->cairo, "cairo_surface_write_to_png_stream", &r->write_png},
                     {r->cairo, "cairo_destroy", &r->destroy},
                     {r->cairo, "cairo_surface_destroy", &r->surface_destroy},
                     {r->objects, "g_object_unref", &r->unref}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *found = functions[i].library ? dlsym(functions[i].library, functions[i].name) : NULL;
        if (!found)
            return plim_fail(err, PLIM_UNSUPPORTED,
                             "a PNG needs librsvg 2.46 or later (apt install librsvg2-2); .svg "
                             "needs nothing");
        memcpy(functions[i].function, &found, sizeof(found));
    }
    return PLIM_OK;
}

struct image {
    PLIM_ARRAY(char) bytes;
};

static int append(void *user, const unsigned char *bytes, unsigned size)
{
    struct image *image = user;
    size_t used = image->bytes.count;
    if (PLIM_ARRAY_RESERVE(&image->bytes, used + size) != PLIM_OK) return 1; /* no memory */
    memcpy(image->bytes.items + used, bytes, size);
    image->bytes.count += size;
    return 0;
}

static bool rasterize(const struct rasterizer *r, const char *svg, int height, struct image *image)
{
    const struct rectangle whole = {0, 0, WIDTH + 2 * EDGE, height};
    void *handle = r->handle_new((const unsigned char *)svg, strlen(svg), NULL);
    void *surface = r->surface_create(0 /* ARGB32 */, (int)whole.width, height);
    void *cairo = surface ? r->create(surface) : NULL;
    bool done = handle && cairo && r->render(handle, cairo, &whole, NULL) &&
                r->write_png(surface, append, image) == 0;
    if (cairo) r->destroy(cairo);
    if (surface) r->surface_destroy(surface);
    if (handle) r->unref(handle);
    return done;
}

static enum plim_status draw_png(const struct plim_report *report, char **bytes, size_t *size,
                                 struct plim_error *err)
{
    struct rasterizer rasterizer;
    struct image image = {0};
    char *svg = NULL, *charts = NULL;
    int height;
    *bytes = NULL;
    enum plim_status st = load_rasterizer(&rasterizer, err);
    if (!st) st = draw_charts(report, &charts, &height);
    free(charts);
    if (!st) st = write_svg(report, NULL, &svg, err);
    if (!st && !rasterize(&rasterizer, svg, height, &image))
        st = plim_fail(err, PLIM_UNSUPPORTED, "librsvg cannot draw the charts");
    free(svg);
    *bytes = image.bytes.items;
    *size = image.bytes.count;
    return st;
}

const struct plim_writer plim_writer_png = {
    .name = "png", .extensions = {"png"}, .draws = true, .draw = draw_png};
