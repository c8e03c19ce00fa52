#include "on_card.h"
#include "autotune/base/clock.h"
#include "devices/open.h"
#include "devices/sim/sim.h"
#include "kernel_case_device.h"
#if PLIM_WITH_CUDA
#include "devices/cuda/cuda.h"
#endif

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>

/* --- shared ----------------------------------------------------------------------------------- */

void on_card_say(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    puts(text ? text : "{}");
    fflush(stdout);
    free(text);
    json_decref(line);
}

bool on_card_is_late(const struct on_card *card)
{
    return card->seconds > 0 && plim_clock_seconds() - card->started > card->seconds;
}

void on_card_give_up(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("on_card: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

void on_card_open(struct on_card *card)
{
    struct plim_error err = PLIM_ERROR_INIT;
    if (plim_device_open(card->uri, &card->device, &err) != PLIM_OK)
        on_card_give_up("%s", err.text);
    card->scheme = plim_uri_scheme(card->uri);
}

struct plim_device *on_card_twin(const struct on_card *card)
{
    const struct plim_device_info *info = &card->device->info;
    const struct plim_gpu *like = NULL;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *twin;
    struct plim_gpu gpu;
    if (plim_catalogue_find(info->name, &like, NULL) != PLIM_OK) like = NULL;
    for (size_t i = 0; !like && i < plim_catalogue_count(); i++)
        if (plim_catalogue_at(i)->compute_capability == info->compute_capability &&
            plim_catalogue_at(i)->multiprocessors == info->multiprocessors)
            like = plim_catalogue_at(i);
    gpu = like ? *like : *plim_catalogue_at(0);
    gpu.compute_capability = info->compute_capability;
    gpu.multiprocessors = info->multiprocessors;
    gpu.total_bytes = info->total_bytes;
    if (plim_sim_open_gpu(&gpu, 0, &twin, &err) != PLIM_OK) on_card_give_up("%s", err.text);
    return twin;
}

/* --- small verbs ------------------------------------------------------------------------------ */

int on_card_info(struct on_card *card)
{
    double opened = plim_clock_seconds();
    on_card_open(card);
    const struct plim_device_info *info = &card->device->info;
    json_t *line =
        json_pack("{s:s s:s s:b s:i s:i s:i s:I s:I s:f}", "name", info->name, "uri", info->uri,
                  "simulated", info->simulated, "compute_capability", info->compute_capability,
                  "multiprocessors", info->multiprocessors, "threads_per_multiprocessor",
                  info->threads_per_multiprocessor, "total_bytes", (json_int_t)info->total_bytes,
                  "free_bytes", (json_int_t)plim_device_free_bytes(card->device), "open_seconds",
                  plim_clock_seconds() - opened);
#if PLIM_WITH_CUDA
    char versions[2048];
    json_object_set_new(line, "versions",
                        json_string(plim_cuda_versions_text(versions, sizeof versions)));
#endif
    on_card_say(line);
    return 0;
}

int on_card_kernels(struct on_card *card)
{
    int failed = 0, run = 0;
    on_card_open(card);
    kernel_case_use(card->device, card->scheme == PLIM_SCHEME_CUDA);
    for (const struct plain_test *t = plain_tests(); t; t = t->next) {
        char first[512], name[160];
        snprintf(name, sizeof name, "%s/%s", t->suite, t->name);
        if (strncmp(name, card->only, strlen(card->only)) != 0 || on_card_is_late(card)) continue;
        double begin = plim_clock_seconds();
        int failures = plain_run(t, first, sizeof first);
        json_t *line = json_pack("{s:s s:b s:f}", "test", name, "ok", failures == 0, "seconds",
                                 plim_clock_seconds() - begin);
        if (failures) json_object_set_new(line, "why", json_string(first));
        on_card_say(line);
        run++;
        failed += failures > 0;
        if (card->device->lost) break;
    }
    kernel_case_leave();
    on_card_say(json_pack("{s:i s:i s:I s:b}", "tests", run, "failed", failed, "operations",
                          (json_int_t)kernel_case_count(), "lost", card->device->lost));
    return failed + card->device->lost;
}

/* --- the command line ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct on_card *card);
} verbs[] = {{"info", on_card_info},     {"kernels", on_card_kernels}, {"golden", on_card_golden},
             {"losses", on_card_losses}, {"time", on_card_time},       {"oom", on_card_oom},
             {"break", on_card_break}};

static void read_option(struct on_card *card, const char *name, const char *value)
{
    if (!strcmp(name, "--cases"))
        card->cases = value;
    else if (!strcmp(name, "--only"))
        card->only = value;
    else if (!strcmp(name, "--seconds"))
        card->seconds = strtod(value, NULL);
    else if (!strcmp(name, "--times"))
        card->times = strtol(value, NULL, 10);
    else
        on_card_give_up("%s: no such option", name);
}

int main(int argc, char **argv)
{
    struct on_card card = {.only = "", .times = 1, .started = plim_clock_seconds()};
    if (argc < 3 || argc % 2 == 0)
        on_card_give_up("expected on_card VERB URI [--cases FILE] [--only PREFIX] [--seconds S] "
                        "[--times N]");
    card.uri = argv[2];
    for (int i = 3; i + 1 < argc; i += 2) read_option(&card, argv[i], argv[i + 1]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) != 0) continue;
        int failed = verbs[i].run(&card);
        plim_device_close(&card.device);
        return failed ? 1 : 0;
    }
    on_card_give_up("%s: no such verb", argv[1]);
}
