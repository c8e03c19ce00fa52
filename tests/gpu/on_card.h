/* on_card: what scripts/gpu-suite runs on a device, in one process; a JSON object a line on stdout.
 *
 *     on_card VERB URI [--name VALUE]...
 *
 * URI: "cuda:0", "host", "sim:H100-SXM5-80GB", with ",memory=24GiB" if wanted. Nothing but this
 * program and the files that are named is needed.
 */
#ifndef PLIM_TESTS_GPU_ON_CARD_H
#define PLIM_TESTS_GPU_ON_CARD_H

#include "devices/open.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <jansson.h>

struct on_card {
    const char *uri;
    enum plim_device_scheme scheme;
    struct plim_device *device;
    const char *cases; /* --cases: a file, a case a line, fields as in tests/golden */
    const char *only;  /* --only: what names begin with; "" */
    double seconds;    /* --seconds: begin nothing after so many; 0: no end */
    long times;        /* --times: how often */
    double started;
};

/* Prints a line, and drops it. */
void on_card_say(json_t *line);
bool on_card_is_late(const struct on_card *card);
/* Ends the program with a message. */
void on_card_give_up(const char *fmt, ...) PLIM_PRINTF(1, 2);

/* Opens `card->uri`, or ends the program. */
void on_card_open(struct on_card *card);
/* The same card, simulated: to compare with. */
struct plim_device *on_card_twin(const struct on_card *card);

/* Verbs. They return how much went wrong. */
int on_card_info(struct on_card *card);    /* the card, and what a context takes of it */
int on_card_kernels(struct on_card *card); /* every operation against the reference */
int on_card_golden(struct on_card *card);  /* cases: bytes of each step, here and simulated */
int on_card_losses(struct on_card *card);  /* cases with losses of PyTorch */
int on_card_time(struct on_card *card);    /* cases: seconds of a step, measured and by the clock */
int on_card_oom(struct on_card *card);     /* a case: out of memory, and on, `times` times */
int on_card_break(struct on_card *card);   /* a case, then an illegal address */

/* Calls `run` for each case of `card->cases` until it is late. Returns the sum of the results. */
int on_card_each(struct on_card *card,
                 int (*run)(struct on_card *card, const json_t *c, json_t *line));
/* The model and the setting of a case: "config", "spec" (a name of the zoo), or "hf". */
bool on_card_read_case(const struct on_card *card, const json_t *c, struct plim_spec *spec,
                       struct plim_train_setting *setting, struct plim_error *err);

#endif
