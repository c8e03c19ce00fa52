/* Recorded streams of launches (data/steps, see record_streams.py there), and made ones. */
#include "devices/virtual/steps/steps.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- recorded streams ------------------------------------------------------------------------- */

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
        if (*word == '|') count = &event->written_count;
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
    case 'm': event.bytes = strtoll(line + 1, NULL, 10); break;
    case 'k':
    case 'l':
        sscanf(line + 1, "%d%n", &event.symbol, &rest);
        read_addresses(&event, line + 1 + rest);
        break;
    case 'c': read_addresses(&event, line + 1); break;
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
static double clock_of_test(void) { return now; }

static void play(struct plim_steps *steps, const struct stream *stream, const struct event *event)
{
    const struct symbol *symbol = &stream->symbols[event->symbol];
    const uintptr_t *written = event->addresses + event->read_count;
    size_t reads = (size_t)event->read_count, writes = (size_t)event->written_count;
    now += 1e-5;
    switch (event->kind) {
    case 'k': plim_steps_launch(steps, symbol->token, symbol->class, written, writes); break;
    case 'l':
        plim_steps_library(steps, symbol->token, symbol->operation, event->addresses, reads,
                           written, writes);
        break;
    case 'c': plim_steps_copy(steps, event->addresses[0]); break;
    case 'm': plim_steps_held(steps, event->bytes); break;
    }
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
        plim_steps_look(steps, &outcome.end);
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
    int accumulation; /* told to the judge; 0: not */
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

Test(steps, recorded_programs_have_the_steps_that_they_count)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct expected *e = &expected[i];
        struct outcome outcome = run_stream(e->name, 3, e->accumulation);
        cr_expect(eq(int, outcome.end.rule, e->rule), "%s", e->name);
        cr_expect(eq(i64, outcome.end.steps, e->steps - e->missed), "%s", e->name);
        cr_expect(eq(int, outcome.end.leaks, !strcmp(e->name, "leaks")), "%s", e->name);
    }
}

/* Whatever is wanted, and whether accumulation is known or not. */
Test(steps, no_recorded_program_is_called_steady_before_its_second_step_has_ended)
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
Test(steps, memory_stays_at_what_was_called_steady)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct expected *e = &expected[i];
        struct outcome outcome = run_stream(e->name, 3, e->accumulation);
        bool is_small = outcome.later_bytes <= 2 << 20 || !strcmp(e->name, "leaks");
        cr_expect(is_small, "%s: %lld", e->name, (long long)outcome.later_bytes);
    }
}

Test(steps, plain_programs_are_called_steady_after_five_steps_where_three_are_wanted)
{
    static const char *const names[] = {"nanogpt", "nanogpt_accumulation_8", "adamw_foreach",
                                        "evaluates_first", "grad_scaler", "tiny_mlp", "compiled",
                                        "lora"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_expect(eq(i64, run_stream(names[i], 3, 0).verdict, 5), "%s", names[i]);
}

Test(steps, programs_that_do_not_train_have_none)
{
    static const char *const names[] = {"never_generates", "never_evaluates"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct outcome outcome = run_stream(names[i], 1, 1);
        cr_expect(eq(int, outcome.end.rule, PLIM_STEPS_BY_NOTHING), "%s", names[i]);
        cr_expect(eq(i64, outcome.verdict, -1), "%s", names[i]);
    }
}

Test(steps, lengths_that_vary_take_ten_times_as_many)
{
    struct outcome outcome = run_stream("lengths_vary", 1, 0);
    cr_expect(gt(i64, outcome.verdict, 10));
    cr_expect(eq(i64, run_stream("lengths_vary", 5, 0).verdict, -1));
}

Test(steps, of_two_models_in_turn_both_are_waited_for)
{
    cr_expect(gt(i64, run_stream("gan_alternating", 3, 0).verdict, 2));
    cr_expect(gt(i64, run_stream("gan_critic_5", 5, 0).verdict, 1));
}

/* It takes long: what went before has to be outweighed. */
Test(steps, a_program_that_generates_before_it_trains_is_never_taken_for_more_than_it_is)
{
    struct outcome outcome = run_stream("generates_and_trains", 1, 0);
    cr_expect(eq(int, outcome.end.rule, PLIM_STEPS_BY_OPTIMIZER));
    cr_expect(lt(i64, outcome.end.steps, 24));
    cr_expect(outcome.verdict == -1 || outcome.verdict > 3);
}

Test(steps, accumulation_without_a_known_optimizer_is_not_taken_for_steps)
{
    static const char name[] = "own_optimizer_autocast_accumulation_16";
    cr_expect(eq(i64, run_stream(name, 1, 0).verdict, -1));
    cr_expect(eq(i64, run_stream(name, 1, 16).verdict, -1));
}

Test(steps, where_steps_are_unclear_knowing_the_accumulation_helps)
{
    cr_expect(eq(i64, run_stream("hf_trainer_adafactor", 3, 0).verdict, -1));
    cr_expect(ge(i64, run_stream("hf_trainer_adafactor", 3, 1).verdict, 16));
    cr_expect(ge(i64, run_stream("own_optimizer_autocast", 3, 0).verdict, 130));
    cr_expect(lt(i64, run_stream("own_optimizer_autocast", 3, 1).verdict, 30));
}

Test(steps, a_leak_is_told_with_its_slope)
{
    struct outcome outcome = run_stream("leaks", 3, 0);
    cr_expect(outcome.end.leaks);
    cr_expect(gt(dbl, outcome.end.leak_bytes, 2.5 * (1 << 20)));
    cr_expect(lt(dbl, outcome.end.leak_bytes, 4.0 * (1 << 20)));
}

/* --- made streams ----------------------------------------------------------------------------- */

enum { LAYERS = 12 };

/* A forward or a backward pass: library calls with weights from 1000 on, and activations. */
static void pass(struct plim_steps *steps, bool backward)
{
    for (int i = 0; i < LAYERS; i++) {
        int layer = backward ? LAYERS - 1 - i : i;
        uintptr_t read[] = {1000 + (uintptr_t)layer, 2000 + (uintptr_t)layer};
        if (backward) plim_steps_launch(steps, 7, PLIM_STEPS_BACKWARD, NULL, 0);
        plim_steps_library(steps, 1, backward ? 2 : 1, read, 2, NULL, 0);
        plim_steps_launch(steps, 6, PLIM_STEPS_PLAIN, NULL, 0);
        now += 0.001;
    }
}

static void launch(struct plim_steps *steps, enum plim_steps_class class, int count)
{
    for (int i = 0; i < count; i++) plim_steps_launch(steps, 20 + class, class, NULL, 0);
}

static void make_step(struct plim_steps *steps, enum plim_steps_class class)
{
    pass(steps, false);
    pass(steps, true);
    launch(steps, class, 6);
}

static struct plim_steps_state look(const struct plim_steps *steps)
{
    struct plim_steps_state state;
    plim_steps_look(steps, &state);
    return state;
}

Test(steps, seconds_are_the_median_from_step_to_step)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 9; i++) {
        make_step(steps, PLIM_STEPS_UPDATE);
        if (i == 3) now += 5;
    }
    cr_expect(eq(i64, look(steps).steps, 8));
    cr_expect(epsilon_eq(dbl, look(steps).seconds, 2 * LAYERS * 0.001, 1e-9));
    cr_expect(eq(i64, look(steps).launches, 2 * 2 * LAYERS + LAYERS + 6));
    plim_steps_destroy(steps);
}

Test(steps, growth_in_the_step_that_goes_on_is_growth)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    plim_steps_held(steps, 100);
    for (int i = 0; i < 8; i++) make_step(steps, PLIM_STEPS_UPDATE);
    struct plim_steps_state state = look(steps);
    cr_expect(plim_steps_is_steady(&state, 3, 0));
    plim_steps_held(steps, 90);
    plim_steps_held(steps, 101);
    state = look(steps);
    cr_expect(not(plim_steps_is_steady(&state, 1, 0)));
    plim_steps_destroy(steps);
}

Test(steps, a_step_with_a_refusal_is_not_steady)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    plim_steps_held(steps, 100);
    for (int i = 0; i < 8; i++) make_step(steps, PLIM_STEPS_UPDATE);
    cr_expect(ge(i64, look(steps).steady, 3));
    plim_steps_refused(steps);
    cr_expect(plim_steps_changed(steps));
    cr_expect(eq(i64, look(steps).steady, 0));
    for (int i = 0; i < 2; i++) make_step(steps, PLIM_STEPS_UPDATE);
    cr_expect(le(i64, look(steps).steady, 1), "the step before and the one with the refusal");
    for (int i = 0; i < 4; i++) make_step(steps, PLIM_STEPS_UPDATE);
    cr_expect(ge(i64, look(steps).steady, 3));
    plim_steps_destroy(steps);
}

Test(steps, a_period_with_a_refusal_is_not_steady)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 40; i++) make_step(steps, PLIM_STEPS_PLAIN);
    cr_assert(eq(int, look(steps).rule, PLIM_STEPS_BY_PERIOD));
    cr_expect(ge(i64, look(steps).steady, 30));
    plim_steps_refused(steps);
    cr_expect(eq(i64, look(steps).steady, 0));
    plim_steps_destroy(steps);
}

Test(steps, growth_that_slows_down_is_no_leak)
{
    struct plim_steps *slowing = plim_steps_create(clock_of_test);
    struct plim_steps *leaking = plim_steps_create(clock_of_test);
    for (int64_t i = 1, bytes = 0; i < 700; i++) {
        bytes += 100000 / i;
        plim_steps_held(slowing, bytes);
        plim_steps_held(leaking, 1000 * (i / 10));
        make_step(slowing, PLIM_STEPS_UPDATE);
        make_step(leaking, PLIM_STEPS_UPDATE);
    }
    cr_expect(not(look(slowing).leaks));
    cr_expect(look(leaking).leaks);
    cr_expect(epsilon_eq(dbl, look(leaking).leak_bytes, 100, 5));
    plim_steps_destroy(slowing);
    plim_steps_destroy(leaking);
}

Test(steps, micro_steps_that_are_clipped_are_no_steps_once_an_optimizer_shows)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int micro = 0; micro < 100; micro++) {
        make_step(steps, PLIM_STEPS_GRADIENT);
        struct plim_steps_state state = look(steps);
        cr_expect(not(plim_steps_is_steady(&state, 1, 0)));
    }
    launch(steps, PLIM_STEPS_UPDATE, 6);
    make_step(steps, PLIM_STEPS_GRADIENT);
    cr_expect(eq(int, look(steps).rule, PLIM_STEPS_BY_OPTIMIZER));
    cr_expect(eq(i64, look(steps).steps, 1));
    plim_steps_destroy(steps);
}

/* Of two optimizers, as with Muon, in a row; clipping in each micro-step is a sign of its own. */
Test(steps, an_optimizers_word_counts_more_than_what_kernels_show)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 28; i++) {
        make_step(steps, PLIM_STEPS_GRADIENT);
        for (int n = 0; n < 2 && i % 4 == 3; n++) {
            plim_steps_told(steps);
            launch(steps, PLIM_STEPS_UPDATE, 6);
        }
    }
    make_step(steps, PLIM_STEPS_GRADIENT);
    cr_expect(eq(int, look(steps).rule, PLIM_STEPS_BY_WORD));
    cr_expect(eq(i64, look(steps).steps, 7));
    plim_steps_destroy(steps);
}

Test(steps, updates_within_a_backward_pass_end_no_step)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 6; i++) {
        pass(steps, false);
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            uintptr_t read[] = {1000 + (uintptr_t)layer, 3000};
            launch(steps, PLIM_STEPS_BACKWARD, 1);
            plim_steps_library(steps, 1, 2, read, 2, NULL, 0);
            launch(steps, PLIM_STEPS_UPDATE, 100);
        }
        cr_expect(eq(i64, look(steps).steps, i));
    }
    plim_steps_destroy(steps);
}

Test(steps, a_whole_step_in_a_graph_is_a_step_a_launch)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 3; i++) make_step(steps, PLIM_STEPS_UPDATE);
    for (int i = 0; i < 10; i++) plim_steps_graph(steps, 99, PLIM_STEPS_WHOLE, 2 * LAYERS);
    cr_expect(eq(i64, look(steps).steps, 12)); /* the last burst before joins the first graph */
    plim_steps_destroy(steps);
}

Test(steps, passes_in_graphs_are_passes)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 2; i++) make_step(steps, PLIM_STEPS_UPDATE);
    for (int i = 0; i < 10; i++) {
        plim_steps_graph(steps, 98, PLIM_STEPS_PLAIN, LAYERS);
        plim_steps_graph(steps, 99, PLIM_STEPS_BACKWARD, 2 * LAYERS);
        launch(steps, PLIM_STEPS_UPDATE, 6);
    }
    cr_expect(eq(i64, look(steps).steps, 11));
    plim_steps_destroy(steps);
}

Test(steps, without_any_library_the_length_has_to_do)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    launch(steps, PLIM_STEPS_PLAIN, 30);
    for (int i = 0; i < 10; i++) {
        launch(steps, PLIM_STEPS_PLAIN, 200);
        launch(steps, PLIM_STEPS_ONE_UPDATE, 12);
    }
    cr_expect(eq(i64, look(steps).steps, 8));
    plim_steps_destroy(steps);
}

Test(steps, something_new_is_announced_once)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 2; i++) make_step(steps, PLIM_STEPS_UPDATE);
    cr_expect(plim_steps_changed(steps));
    cr_expect(not(plim_steps_changed(steps)));
    plim_steps_held(steps, 5);
    cr_expect(plim_steps_changed(steps));
    plim_steps_destroy(steps);
}

Test(steps, tables_that_overflow_do_no_harm)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (uintptr_t step = 0; step < 5; step++) {
        make_step(steps, PLIM_STEPS_UPDATE);
        for (uintptr_t i = 1; i < 200000; i++) {
            uintptr_t read = (step << 32) + 512 * i;
            plim_steps_library(steps, i, 1, &read, 1, &read, 1);
        }
    }
    cr_expect(le(i64, look(steps).steps, 5));
    plim_steps_destroy(steps);
}

Test(steps, nothing_is_fine)
{
    struct plim_steps_state state;
    plim_steps_launch(NULL, 1, PLIM_STEPS_UPDATE, NULL, 0);
    plim_steps_library(NULL, 1, 1, NULL, 0, NULL, 0);
    plim_steps_graph(NULL, 1, PLIM_STEPS_WHOLE, 1);
    plim_steps_copy(NULL, 1);
    plim_steps_told(NULL);
    plim_steps_held(NULL, 1);
    plim_steps_refused(NULL);
    plim_steps_look(NULL, &state);
    plim_steps_destroy(NULL);
    cr_expect(not(plim_steps_changed(NULL)));
    cr_expect(not(plim_steps_is_steady(&state, 1, 1)));
}

Test(steps, kernels_are_known_by_their_names)
{
    static const struct {
        const char *name;
        enum plim_steps_class class;
    } cases[] = {
        {"25multi_tensor_apply_kernelI...20FusedAdamMathFunctorIfLi4E", PLIM_STEPS_UPDATE},
        {"25multi_tensor_apply_kernelI...28PointwiseOpScalarListFunctorIf", PLIM_STEPS_UPDATE},
        {"_Z25multi_tensor_apply_kernelI18TensorListMetadata11AdamFunctor", PLIM_STEPS_UPDATE},
        {"25multi_tensor_apply_kernelI...24BinaryOpListAlphaFunctorIf", PLIM_STEPS_LIST},
        {"25multi_tensor_apply_kernelI...13LpNormFunctorIf", PLIM_STEPS_GRADIENT},
        {"25multi_tensor_apply_kernelI...22TernaryOpScalarFunctor", PLIM_STEPS_PLAIN},
        {"25multi_tensor_apply_kernelI...4CopyIff", PLIM_STEPS_PLAIN},
        {"_Z35kOptimizerStatic8bit2StateBlockwiseIfLi0E", PLIM_STEPS_UPDATE},
        {"vectorized_elementwise_kernelILi4EZZZNS0_19addcdiv_cuda_kernel", PLIM_STEPS_ONE_UPDATE},
        {"fast_hadamard_transform_kernel", PLIM_STEPS_PLAIN},
        {"softmax_warp_backward", PLIM_STEPS_BACKWARD},
        {"_attn_bwd_dkdv", PLIM_STEPS_BACKWARD},
        {"triton_per_fused_add_native_layer_norm_native_layer_norm_backward_7", PLIM_STEPS_PLAIN},
        {"triton_red_fused_native_layer_norm_backward_3", PLIM_STEPS_BACKWARD},
        {"triton_tem_fused_mm_2", PLIM_STEPS_WORK},
        {NULL, PLIM_STEPS_PLAIN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(int, plim_steps_classify(cases[i].name), cases[i].class), "%s", cases[i].name);
}

Test(steps, a_graph_is_what_is_in_it)
{
    static const enum plim_steps_class cases[][3] = {
        {PLIM_STEPS_PLAIN, PLIM_STEPS_WORK, PLIM_STEPS_WORK},
        {PLIM_STEPS_WORK, PLIM_STEPS_BACKWARD, PLIM_STEPS_BACKWARD},
        {PLIM_STEPS_BACKWARD, PLIM_STEPS_UPDATE, PLIM_STEPS_WHOLE},
        {PLIM_STEPS_WHOLE, PLIM_STEPS_PLAIN, PLIM_STEPS_WHOLE},
        {PLIM_STEPS_PLAIN, PLIM_STEPS_ONE_UPDATE, PLIM_STEPS_UPDATE},
        {PLIM_STEPS_GRADIENT, PLIM_STEPS_UPDATE, PLIM_STEPS_UPDATE},
        {PLIM_STEPS_GRADIENT, PLIM_STEPS_BACKWARD, PLIM_STEPS_BACKWARD},
        {PLIM_STEPS_PLAIN, PLIM_STEPS_LIST, PLIM_STEPS_LIST},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect(eq(int, plim_steps_join(cases[i][0], cases[i][1]), cases[i][2]), "%zu", i);
        cr_expect(eq(int, plim_steps_join(cases[i][1], cases[i][0]), cases[i][2]), "%zu", i);
    }
}
