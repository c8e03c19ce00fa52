/* Steps in made streams of launches; recorded ones: test_recorded_steps.c. */
#include "devices/virtual/steps/leak.h"
#include "devices/virtual/steps/steps.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static double now;
static double clock_of_test(void) { return now; }

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
    plim_steps_get_state(steps, &state);
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
    plim_steps_set_held(steps, 100);
    for (int i = 0; i < 8; i++) make_step(steps, PLIM_STEPS_UPDATE);
    struct plim_steps_state state = look(steps);
    cr_expect(plim_steps_is_steady(&state, 3, 0));
    plim_steps_set_held(steps, 90);
    plim_steps_set_held(steps, 101);
    state = look(steps);
    cr_expect(not(plim_steps_is_steady(&state, 1, 0)));
    plim_steps_destroy(steps);
}

Test(steps, a_step_with_a_refusal_is_not_steady)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    plim_steps_set_held(steps, 100);
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

/* A step whose activations come as a large block and a small one at these places. */
static void make_step_at(struct plim_steps *steps, uintptr_t large, uintptr_t small)
{
    pass(steps, false);
    plim_steps_block(steps, large, 2 << 20);
    plim_steps_block(steps, small, 1 << 20);
    pass(steps, true);
    launch(steps, PLIM_STEPS_UPDATE, 6);
}

Test(steps, memory_that_is_laid_out_anew_is_not_steady)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    plim_steps_set_held(steps, 100);
    for (uintptr_t i = 1; i <= 20; i++) make_step_at(steps, i << 24, 1);
    struct plim_steps_state state = look(steps);
    cr_expect(ge(i64, state.steady, 18));
    cr_expect(state.moves && !plim_steps_is_steady(&state, 5, 0));
    for (uintptr_t i = 1; i <= 3; i++) make_step_at(steps, (19 + i % 2) << 24, i);
    state = look(steps);
    cr_expect(plim_steps_is_steady(&state, 5, 0) && !state.moves,
              "two places by turns, small ones anywhere");
    for (uintptr_t i = 1; i <= 60; i++) make_step_at(steps, (100 + i) << 24, 1);
    state = look(steps);
    cr_expect(state.moves && plim_steps_is_steady(&state, 5, 0), "it need not ever come to rest");
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

/* Weights that are not updated in place: libraries read other addresses in each step. */
static void make_functional_step(struct plim_steps *steps, int number)
{
    for (uint64_t i = 0; i < 20; i++) {
        uintptr_t read = (uintptr_t)((uint64_t)number * 20 + i + 1) << 20;
        plim_steps_library(steps, i << 40, 7, &read, 1, NULL, 0);
        plim_steps_launch(steps, i << 40, i < 10 ? PLIM_STEPS_PLAIN : PLIM_STEPS_BACKWARD, NULL, 0);
    }
}

Test(steps, of_weights_that_lie_elsewhere_each_time_are_seen_by_their_shapes)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    struct plim_steps *told = plim_steps_create(clock_of_test);
    plim_steps_expect_optimizer(told);
    for (int i = 0; i < 200; i++) {
        make_functional_step(steps, i);
        make_functional_step(told, i);
    }
    cr_expect(eq(int, look(steps).rule, PLIM_STEPS_BY_PERIOD));
    cr_expect(ge(i64, look(steps).steps, 198));
    cr_expect(eq(int, look(told).rule, PLIM_STEPS_BY_NOTHING), "layers may be as alike: its optimizer will tell");
    plim_steps_destroy(steps);
    plim_steps_destroy(told);
}

Test(steps, a_loss_that_is_shown_and_an_evaluation_come_between_steps)
{
    enum { MODEL = 200, EVALUATION = 100 };
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (uint64_t i = 0; i < MODEL; i++) plim_steps_launch(steps, (i + 1000) << 40, PLIM_STEPS_PLAIN, NULL, 0);
    for (int i = 0; i < 400; i++) {
        make_functional_step(steps, i);
        if (i % 10 == 9) plim_steps_launch(steps, (uint64_t)99 << 40, PLIM_STEPS_PLAIN, NULL, 0);
        for (uint64_t k = 0; k < EVALUATION && i == 250; k++)
            plim_steps_launch(steps, (k % 5 + 50) << 40, PLIM_STEPS_PLAIN, NULL, 0);
    }
    cr_expect(eq(i64, look(steps).launches, 40), "a step, not ten of them");
    cr_expect(ge(i64, look(steps).steps, 370));
    plim_steps_destroy(steps);
}

Test(steps, growth_that_slows_down_is_no_leak)
{
    struct plim_steps *slowing = plim_steps_create(clock_of_test);
    struct plim_steps *leaking = plim_steps_create(clock_of_test);
    for (int64_t i = 1, bytes = 0; i < 700; i++) {
        bytes += 100000 / i;
        plim_steps_set_held(slowing, bytes);
        plim_steps_set_held(leaking, 1000 * (i / 10));
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
/* As launches are observed with a real driver: only by their kernels. */
Test(steps, many_layers_of_a_step_are_not_steps_where_operands_are_not_known)
{
    enum { DEPTH = 40, RECOMPUTED = 8, BACKWARD = 20 };
    struct plim_steps_state state;
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < DEPTH * RECOMPUTED; i++)
        plim_steps_launch(steps, (uint64_t)(i % RECOMPUTED) << 33, PLIM_STEPS_WORK, NULL, 0);
    for (int i = 0; i < DEPTH * (RECOMPUTED + BACKWARD); i++) {
        int in_layer = i % (RECOMPUTED + BACKWARD);
        enum plim_steps_class class = in_layer < RECOMPUTED ? PLIM_STEPS_WORK : PLIM_STEPS_BACKWARD;
        plim_steps_launch(steps, (uint64_t)in_layer << 33, class, NULL, 0);
        plim_steps_get_state(steps, &state);
        cr_assert(eq(int, state.rule, PLIM_STEPS_BY_NOTHING), "launch %d", i);
    }
    plim_steps_destroy(steps);
}

Test(steps, an_optimizers_word_counts_more_than_what_kernels_show)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 0; i < 28; i++) {
        make_step(steps, PLIM_STEPS_GRADIENT);
        for (int n = 0; n < 2 && i % 4 == 3; n++) {
            plim_steps_optimizer_stepped(steps, 0);
            launch(steps, PLIM_STEPS_UPDATE, 6);
        }
    }
    make_step(steps, PLIM_STEPS_GRADIENT);
    cr_expect(eq(int, look(steps).rule, PLIM_STEPS_BY_REPORT));
    cr_expect(eq(i64, look(steps).steps, 7));
    plim_steps_destroy(steps);
}

Test(steps, the_last_one_ends_with_the_program)
{
    struct plim_steps *steps = plim_steps_create(clock_of_test);
    for (int i = 1; i <= 3; i++) {
        make_step(steps, PLIM_STEPS_GRADIENT);
        plim_steps_optimizer_stepped(steps, 0);
        cr_expect(eq(i64, look(steps).steps, i - 1));
    }
    plim_steps_finish(steps);
    cr_expect(eq(i64, look(steps).steps, 3));
    plim_steps_finish(steps);
    cr_expect(eq(i64, look(steps).steps, 3));
    plim_steps_destroy(steps);
}

/* As cuDNN's algorithms are tried in the first step: each of its calls many times. */
Test(steps, one_optimizer_that_speaks_again_ends_a_step)
{
    enum { STEPS = 8, TRIED = 40 };
    for (uint64_t optimizer = 0; optimizer <= 1; optimizer++) {
        struct plim_steps *steps = plim_steps_create(clock_of_test);
        for (int i = 0; i < STEPS; i++) {
            for (uintptr_t n = 0; n < TRIED * LAYERS && !i; n++)
                plim_steps_library(steps, 5, 5, (uintptr_t[]){900000 + n}, 1, NULL, 0);
            make_step(steps, PLIM_STEPS_GRADIENT);
            plim_steps_optimizer_stepped(steps, optimizer);
            plim_steps_optimizer_stepped(steps, 2 * optimizer); /* an optimizer that wraps it, or a second one */
        }
        if (optimizer)
            cr_expect(eq(i64, look(steps).steps, STEPS - 1));
        else
            cr_expect(lt(i64, look(steps).steps, STEPS - 1), "or it is no test");
        plim_steps_destroy(steps);
    }
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
    plim_steps_set_held(steps, 5);
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
    plim_steps_optimizer_stepped(NULL, 0);
    plim_steps_finish(NULL);
    plim_steps_set_held(NULL, 1);
    plim_steps_refused(NULL);
    plim_steps_get_state(NULL, &state);
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

/* --- leaks ------------------------------------------------------------------------------------ */

/* True if a program that holds this much more after each step, with batches of random length, leaks. */
static bool leaks(int64_t each_bytes, int64_t batch_bytes, uint32_t seed, int steps)
{
    struct plim_leak leak = {0};
    double bytes;
    for (int i = 1; i <= steps; i++) {
        seed = seed * 1664525u + 1013904223u;
        plim_leak_sample(&leak, i,
                         i * each_bytes + (int64_t)((uint64_t)batch_bytes * (seed >> 8) >> 24));
    }
    return plim_leak_find(&leak, &bytes);
}

Test(steps, batches_of_random_length_are_no_leak)
{
    for (uint32_t seed = 1; seed <= 1000; seed++)
        for (int steps = 18; steps <= 400; steps += 37)
            cr_assert(not(leaks(0, 64 << 20, seed, steps)), "seed %u, %d steps", seed, steps);
    cr_expect(leaks(1 << 20, 0, 1, 40));
    cr_expect(leaks(1 << 20, 64 << 20, 1, 400)); /* more than the batches vary, in time */
}
