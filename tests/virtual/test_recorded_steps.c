/* Steps in recorded streams of launches (data/steps, see record_streams.py there). */
#include "devices/virtual/steps/steps.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 1 << 16, OPERANDS = 8 };

struct symbol {
    enum plim_steps_class class;
    uint64_t token, operation;
};

struct event {
    char kind; /* as in the file */
    int symbol, read_count, written_count;
    uintptr_t addresses[OPERANDS]; /* what is read, then what is written */
    int64_t bytes;
};

struct stream {
    struct event *events;
    size_t count, capacity;
    struct symbol *symbols;
    int64_t steps; /* as the program counts them */
};

static FILE *open_data(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/steps/%s.txt", PLIM_VIRTUAL_DATA, name);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    return file;
}

/* Classes of all kernels, by the number of their line. */
static enum plim_steps_class *read_names(void)
{
    enum plim_steps_class *classes = calloc(SYMBOLS, sizeof(*classes));
    char *line = NULL;
    size_t size = 0;
    FILE *file = open_data("names");
    for (int i = 1; i < SYMBOLS && getline(&line, &size, file) > 0; i++)
        classes[i] = plim_steps_classify(line);
    free(line);
    fclose(file);
    return classes;
}

static void add_event(struct stream *stream, const struct event *event)
{
    if (stream->count == stream->capacity) {
        stream->capacity = stream->capacity ? 2 * stream->capacity : 4096;
        stream->events = realloc(stream->events, stream->capacity * sizeof(*event));
    }
    stream->events[stream->count++] = *event;
    stream->steps += event->kind == 's';
}

static void read_addresses(struct event *event, char *text)
{
    int *count = event->kind == 'l' ? &event->read_count : &event->written_count, used = 0;
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
        if (*word == '|')
            count = &event->written_count;
        else if (used < OPERANDS) {
            event->addresses[used++] = 0x300000000000u + 512 * strtoul(word, NULL, 10);
            ++*count;
        }
    }
}

static void read_line(struct stream *stream, const enum plim_steps_class *classes, char *line)
{
    struct event event = {.kind = line[0]};
    unsigned a, b, c;
    int rest = 1;
    switch (line[0]) {
    case 'K':
        sscanf(line, "K %u %u %x", &a, &b, &c);
        stream->symbols[a] = (struct symbol){classes[b], (uint64_t)b << 32 | c, 0};
        return;
    case 'L':
        sscanf(line, "L %u %x %x", &a, &b, &c);
        stream->symbols[a] = (struct symbol){.token = c, .operation = b};
        return;
    case '=':
        sscanf(line, "= %u %u", &a, &b);
        for (unsigned i = 0; i < b; i++) {
            event = stream->events[stream->count - a];
            add_event(stream, &event);
        }
        return;
    case 'm':
        event.bytes = strtoll(line + 1, NULL, 10);
        break;
    case 'k':
    case 'l':
        sscanf(line + 1, "%d%n", &event.symbol, &rest);
        read_addresses(&event, line + 1 + rest);
        break;
    case 'c':
        read_addresses(&event, line + 1);
        break;
    }
    add_event(stream, &event);
}

static void read_stream(struct stream *stream, const char *name)
{
    *stream = (struct stream){.symbols = calloc(SYMBOLS, sizeof(struct symbol))};
    enum plim_steps_class *classes = read_names();
    FILE *file = open_data(name);
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) read_line(stream, classes, line);
    free(line);
    fclose(file);
    free(classes);
}

static void finish_stream(struct stream *stream)
{
    free(stream->events);
    free(stream->symbols);
}

static double now;
static double clock_of_test(void)
{
    return now;
}

static void play(struct plim_steps *steps, const struct stream *stream, const struct event *event)
{
    const struct symbol *symbol = &stream->symbols[event->symbol];
    const uintptr_t *written = event->addresses + event->read_count;
    size_t reads = (size_t)event->read_count, writes = (size_t)event->written_count;
    now += 1e-5;
    switch (event->kind) {
    case 'k':
        plim_steps_launch(steps, symbol->token, symbol->class, written, writes);
        break;
    case 'l':
        plim_steps_library(steps, symbol->token, symbol->operation, event->addresses, reads,
                           written, writes);
        break;
    case 'c':
        plim_steps_copy(steps, event->addresses[0]);
        break;
    case 'm':
        plim_steps_set_held(steps, event->bytes);
        break;
    }
}

/* As it is seen beside a real driver: a library's launches are kernels, and what they read is not known. */
static void play_observed(struct plim_steps *steps, const struct stream *stream,
                          const struct event *event)
{
    struct event seen = *event;
    seen.read_count = seen.written_count = 0;
    if (event->kind == 'l')
        plim_steps_launch(steps, stream->symbols[event->symbol].token, PLIM_STEPS_WORK, NULL, 0);
    else if (event->kind != 'c')
        play(steps, stream, &seen);
}

/* What came out of a stream. */
struct outcome {
    struct plim_steps_state end;
    int64_t verdict; /* optimizer steps that had ended when memory was called steady; -1: never */
    int64_t later_bytes; /* by which the peak grew after that */
};

static struct outcome run_stream(const char *name, int wanted, int accumulation)
{
    struct stream stream;
    read_stream(&stream, name);
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    struct outcome outcome = {.verdict = -1};
    int64_t done = 0, peak = 0, peak_then = 0;
    for (size_t i = 0; i < stream.count; i++) {
        play(steps, &stream, &stream.events[i]);
        done += stream.events[i].kind == 's';
        if (stream.events[i].bytes > peak) peak = stream.events[i].bytes;
        plim_steps_get_state(steps, &outcome.end);
        if (outcome.verdict >= 0) continue;
        if (!plim_steps_is_steady(&outcome.end, wanted, accumulation)) continue;
        outcome.verdict = done;
        peak_then = peak;
    }
    if (outcome.verdict >= 0) outcome.later_bytes = peak - peak_then;
    plim_steps_destroy(steps);
    finish_stream(&stream);
    return outcome;
}

/* Each step is complete when the next one goes backward, so the last one never is. */
static const struct expected {
    const char *name;
    enum plim_steps_rule rule;
    int accumulation;      /* told to the judge; 0: not */
    int64_t steps, missed; /* as the program counts; of these, not seen */
} expected[] = {
    {"adafactor", PLIM_STEPS_BY_WEIGHTS, 0, 6, 2},
    {"adam_8bit", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"adamw_foreach", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"adamw_foreach_accumulation_4", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"adamw_loop", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"adamw_loop_autocast_accumulation_4", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"averaged_each_micro_step", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"bfloat16_weights", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"checkpointed", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"clipped_each_micro_step", PLIM_STEPS_BY_OPTIMIZER, 0, 5, 1},
    {"compiled", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"compiled_optimizer", PLIM_STEPS_BY_LISTS, 0, 8, 1},
    {"evaluates_every_5", PLIM_STEPS_BY_OPTIMIZER, 0, 18, 1},
    {"evaluates_first", PLIM_STEPS_BY_OPTIMIZER, 0, 12, 1},
    {"grad_scaler", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"hf_trainer", PLIM_STEPS_BY_OPTIMIZER, 0, 12, 1},
    {"hf_trainer_accumulation_4", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"hf_trainer_adafactor", PLIM_STEPS_BY_GRADIENTS, 1, 20, 1},
    {"layers_20_accumulation_3", PLIM_STEPS_BY_OPTIMIZER, 0, 4, 1},
    {"leaks", PLIM_STEPS_BY_OPTIMIZER, 0, 60, 1},
    {"lengths_vary", PLIM_STEPS_BY_OPTIMIZER, 0, 28, 1},
    {"lora", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"muon", PLIM_STEPS_BY_OPTIMIZER, 0, 5, 1},
    {"nanogpt", PLIM_STEPS_BY_OPTIMIZER, 0, 8, 1},
    {"nanogpt_accumulation_8", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"optimizer_in_backward", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"optimizer_on_the_host", PLIM_STEPS_BY_WEIGHTS, 0, 6, 2},
    {"own_optimizer", PLIM_STEPS_BY_WEIGHTS, 0, 6, 2},
    {"own_optimizer_autocast", PLIM_STEPS_BY_PERIOD, 0, 200, 3},
    {"resnet", PLIM_STEPS_BY_LISTS, 0, 6, 1},
    {"scan_accumulation_8", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
    {"sgd_foreach", PLIM_STEPS_BY_LISTS, 0, 8, 1},
    {"sgd_loop_accumulation_4", PLIM_STEPS_BY_WEIGHTS, 0, 8, 2},
    {"tiny_mlp", PLIM_STEPS_BY_OPTIMIZER, 0, 10, 1},
    {"vit_ema", PLIM_STEPS_BY_OPTIMIZER, 0, 6, 1},
};

Test(recorded_steps, recorded_programs_have_the_steps_that_they_count)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct expected *e = &expected[i];
        struct outcome outcome = run_stream(e->name, 3, e->accumulation);
        cr_expect(eq(int, outcome.end.rule, e->rule), "%s", e->name);
        cr_expect(eq(i64, outcome.end.steps, e->steps - e->missed), "%s", e->name);
        cr_expect(eq(int, outcome.end.leaks, !strcmp(e->name, "leaks")), "%s", e->name);
    }
}

/* The optimizer steps that had ended when `wanted` were counted for certain; -1: never were. Beside a real driver
 * libraries' operands are not known, and layers repeat within a step. */
static int64_t steps_ended(const struct stream *stream, int64_t wanted, bool is_observed)
{
    struct plim_steps_state state;
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    int64_t done = 0, found = -1;
    for (size_t i = 0; i < stream->count && found < 0; i++) {
        (is_observed ? play_observed : play)(steps, stream, &stream->events[i]);
        done += stream->events[i].kind == 's';
        plim_steps_get_state(steps, &state);
        if (state.steps && state.steps >= plim_steps_needed(state.rule, wanted, 0)) found = done;
    }
    plim_steps_destroy(steps);
    return found;
}

Test(recorded_steps, neither_layers_nor_micro_steps_are_counted_for_steps)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct stream stream;
        read_stream(&stream, expected[i].name);
        for (int64_t wanted = 1; wanted <= 3; wanted++)
            for (int observed = 0; observed <= 1; observed++) {
                /* What it updates is told apart by operands alone. */
                if (observed && !strcmp(expected[i].name, "optimizer_in_backward")) continue;
                int64_t ended = steps_ended(&stream, wanted, observed);
                cr_expect(ended == -1 || ended >= wanted, "%s, %d wanted%s: %d", expected[i].name,
                          (int)wanted, observed ? ", observed" : "", (int)ended);
            }
        finish_stream(&stream);
    }
}

/* Whatever is wanted, and whether accumulation is known or not. */
Test(recorded_steps, no_recorded_program_is_called_steady_before_its_second_step_has_ended)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        for (int wanted = 0; wanted <= 3; wanted++) {
            const struct expected *e = &expected[i];
            struct outcome outcome = run_stream(e->name, wanted, e->accumulation);
            cr_expect(outcome.verdict == -1 || outcome.verdict >= 2 + wanted, "%s, %d wanted: %lld",
                      e->name, wanted, (long long)outcome.verdict);
        }
}

/* Which is a page of small blocks in one of them: it came when Python collected garbage. */
Test(recorded_steps, memory_stays_at_what_was_called_steady)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct expected *e = &expected[i];
        struct outcome outcome = run_stream(e->name, 3, e->accumulation);
        bool is_small = outcome.later_bytes <= 2 << 20 || !strcmp(e->name, "leaks");
        cr_expect(is_small, "%s: %lld", e->name, (long long)outcome.later_bytes);
    }
}

Test(recorded_steps, plain_programs_are_called_steady_after_five_steps_where_three_are_wanted)
{
    static const char *const names[] = {"nanogpt",       "nanogpt_accumulation_8",
                                        "adamw_foreach", "evaluates_first",
                                        "grad_scaler",   "tiny_mlp",
                                        "compiled",      "lora"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_expect(eq(i64, run_stream(names[i], 3, 0).verdict, 5), "%s", names[i]);
}

Test(recorded_steps, programs_that_do_not_train_have_none)
{
    static const char *const names[] = {"never_generates", "never_evaluates"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct outcome outcome = run_stream(names[i], 1, 1);
        cr_expect(eq(int, outcome.end.rule, PLIM_STEPS_BY_NOTHING), "%s", names[i]);
        cr_expect(eq(i64, outcome.verdict, -1), "%s", names[i]);
    }
}

Test(recorded_steps, lengths_that_vary_take_ten_times_as_many)
{
    struct outcome outcome = run_stream("lengths_vary", 1, 0);
    cr_expect(lt(i64, 10, outcome.verdict));
    cr_expect(eq(i64, run_stream("lengths_vary", 5, 0).verdict, -1));
}

Test(recorded_steps, of_two_models_in_turn_both_are_waited_for)
{
    cr_expect(lt(i64, 2, run_stream("gan_alternating", 3, 0).verdict));
    cr_expect(lt(i64, 1, run_stream("gan_critic_5", 5, 0).verdict));
}

/* It takes long: what went before has to be outweighed. */
Test(recorded_steps, a_program_that_generates_before_it_trains_is_never_taken_for_more_than_it_is)
{
    struct outcome outcome = run_stream("generates_and_trains", 1, 0);
    cr_expect(eq(int, outcome.end.rule, PLIM_STEPS_BY_OPTIMIZER));
    cr_expect(lt(i64, outcome.end.steps, 24));
    cr_expect(outcome.verdict == -1 || outcome.verdict > 3);
}

Test(recorded_steps, accumulation_without_a_known_optimizer_is_not_taken_for_steps)
{
    static const char name[] = "own_optimizer_autocast_accumulation_16";
    cr_expect(eq(i64, run_stream(name, 1, 0).verdict, -1));
    cr_expect(eq(i64, run_stream(name, 1, 16).verdict, -1));
}

Test(recorded_steps, where_steps_are_unclear_knowing_the_accumulation_helps)
{
    cr_expect(eq(i64, run_stream("hf_trainer_adafactor", 3, 0).verdict, -1));
    cr_expect(ge(i64, run_stream("hf_trainer_adafactor", 3, 1).verdict, 16));
    cr_expect(ge(i64, run_stream("own_optimizer_autocast", 3, 0).verdict, 130));
    cr_expect(lt(i64, run_stream("own_optimizer_autocast", 3, 1).verdict, 30));
}

Test(recorded_steps, a_leak_is_told_with_its_slope)
{
    struct outcome outcome = run_stream("leaks", 3, 0);
    cr_expect(outcome.end.leaks);
    cr_expect(lt(dbl, 2.5 * (1 << 20), outcome.end.leak_bytes));
    cr_expect(lt(dbl, outcome.end.leak_bytes, 4.0 * (1 << 20)));
}
