/* The parts of the virtual GPU, each for itself; what programs see of them is tested by programs. */
#include "devices/virtual/machine/attribute.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/pool.h"
#include "devices/virtual/questions/loops.h"
#include "devices/virtual/work/fat_binary.h"
#include "devices/virtual/work/launches.h"
#include "devices/virtual/memory/readable.h"
#include "devices/virtual/work/signature.h"
#include "devices/virtual/work/writes.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int64_t MIB = 1 << 20;

/* --- the machine ------------------------------------------------------------------------------ */

Test(machine, processes_share_a_gpu_and_the_dead_give_back)
{
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    int ready[2], go[2];
    char byte = 0;
    cr_assert(eq(int, pipe(ready) || pipe(go), 0));
    pid_t pid = fork();
    if (!pid) {
        struct plim_machine_process *process = plim_machine_enter(machine);
        bool took = plim_machine_take(machine, process, 0, 70 * MIB);
        if (write(ready[1], took ? "y" : "n", 1) != 1 || read(go[0], &byte, 1) != 1) _exit(1);
        _exit(0); /* without a word */
    }
    cr_assert(eq(long, read(ready[0], &byte, 1), 1));
    cr_assert(eq(chr, byte, 'y'));
    struct plim_machine_process *process = plim_machine_enter(machine);
    cr_expect(not(plim_machine_take(machine, process, 0, 40 * MIB)));
    cr_expect(eq(i64, plim_machine_free_bytes(machine, 0), 30 * MIB));
    cr_assert(eq(long, write(go[1], "g", 1), 1));
    waitpid(pid, NULL, 0);
    cr_expect(plim_machine_take(machine, process, 0, 100 * MIB));
    cr_expect(eq(i64, machine->gpus[0].peak_bytes, 100 * MIB));
    plim_machine_destroy(machine, machine_fd);
}

Test(machine, a_note_is_kept_once)
{
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_expect(plim_machine_note(machine, "one"));
    cr_expect(not(plim_machine_note(machine, "one")));
    cr_expect(plim_machine_note(machine, "two"));
    cr_expect(eq(u32, machine->note_count, 2));
    plim_machine_destroy(machine, machine_fd);
}

/* --- values that only a real GPU knows -------------------------------------------------------- */

static void ask_bytes(const char *place, int use, int64_t bytes)
{
    struct plim_machine_question question = {.kernel = "k", .use = use, .bytes = bytes};
    snprintf(question.place, sizeof(question.place), "%s", place);
    plim_machine_ask(machine, &question);
}

static void ask(const char *place, int use)
{
    ask_bytes(place, use, 4);
}

Test(machine, questions_from_one_place_are_counted)
{
    struct plim_machine_questions asked;
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    ask("a.py:1", PLIM_QUESTION_SHOWN);
    ask("a.py:2", PLIM_QUESTION_DECIDES);
    ask("a.py:1", PLIM_QUESTION_KEPT);
    plim_machine_assume(machine, PLIM_ASSUMPTION_FINITE);
    plim_machine_read_questions(machine, &asked);
    cr_assert(eq(u32, asked.count, 2));
    cr_expect(eq(i64, asked.rows[0].count, 2));
    cr_expect(eq(int, asked.rows[0].use, PLIM_QUESTION_KEPT));
    cr_expect(eq(str, asked.rows[1].place, "a.py:2"));
    cr_expect(eq(u32, asked.assumed, PLIM_ASSUMPTION_FINITE));
    for (int i = 0; i < 40; i++) {
        char place[16];
        snprintf(place, sizeof(place), "b.py:%d", i);
        ask(place, PLIM_QUESTION_SHOWN);
    }
    plim_machine_read_questions(machine, &asked);
    cr_expect(eq(u32, asked.count, PLIM_MACHINE_QUESTIONS));
    cr_expect(eq(i64, asked.unlisted, 42 - PLIM_MACHINE_QUESTIONS));
    plim_machine_destroy(machine, machine_fd);
}

/* A program that stores its weights reads hundreds of sizes before it decides anything. */
Test(machine, what_decides_is_not_lost_behind_what_is_kept)
{
    struct plim_machine_questions asked;
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    for (int i = 1; i <= 100; i++) ask_bytes("save.py:1", PLIM_QUESTION_KEPT, i);
    plim_machine_read_questions(machine, &asked);
    cr_assert(eq(u32, asked.count, 1));
    cr_expect(eq(i64, asked.rows[0].count, 100));
    cr_expect(eq(i64, asked.rows[0].bytes, 100));
    for (int i = 1; i < PLIM_MACHINE_QUESTIONS; i++) {
        char place[16];
        snprintf(place, sizeof(place), "b.py:%d", i);
        ask(place, i == 9 ? PLIM_QUESTION_SHOWN : PLIM_QUESTION_KEPT);
    }
    ask("c.py:1", PLIM_QUESTION_DECIDES);
    ask("d.py:1", PLIM_QUESTION_SHOWN);
    plim_machine_read_questions(machine, &asked);
    cr_expect(eq(str, asked.rows[9].place, "c.py:1"));
    cr_expect(eq(int, asked.rows[9].use, PLIM_QUESTION_DECIDES));
    cr_expect(eq(i64, asked.rows[9].count, 1));
    cr_expect(eq(i64, asked.unlisted, 2));
    plim_machine_destroy(machine, machine_fd);
}

Test(machine, what_the_user_says_of_a_place_is_found)
{
    static const char *const bad[] = {"a.py=3", "a.py:=3", "a.py:x=3", ":3=3", "a.py:3=", "a.py:3",
                                      "a.py:3=no", "a.py:3=nan", "a.py:3=1,", "a.py:3=,1", "a.py:3=1*", "a.py:3=1*0",
                                      "a.py:3=*2", "a.py:3=1*-1", "a.py:3=1*2*3", "a.py:3=1,2,3,4,5,6,7,8,9"};
    struct plim_machine_given given;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect(not(plim_machine_given_parse(bad[i], &given)), "%s", bad[i]);
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    machine->given_count = 2;
    cr_assert(plim_machine_given_parse("model/loss.py:30=true", &machine->given[0]));
    cr_assert(plim_machine_given_parse("train.py:7=0.5", &machine->given[1]));
    const struct plim_machine_given *found = plim_machine_find_given(machine, "/home/model/loss.py:30");
    cr_assert(found == &machine->given[0]);
    cr_expect(found->values[0].is_whole);
    cr_expect(eq(dbl, found->values[0].number, 1));
    found = plim_machine_find_given(machine, "train.py:7");
    cr_assert(found == &machine->given[1]);
    cr_expect(not(found->values[0].is_whole));
    cr_expect(eq(dbl, found->values[0].number, 0.5));
    cr_expect(plim_machine_find_given(machine, "/home/pretrain.py:7") == NULL);
    cr_expect(plim_machine_find_given(machine, "train.py:70") == NULL);
    plim_machine_destroy(machine, machine_fd);
}

Test(machine, values_are_given_in_turn)
{
    struct plim_machine_given given;
    cr_assert(plim_machine_given_parse("a.py:3=true*3,false,-2.5", &given));
    cr_expect(eq(str, given.place, "a.py:3"));
    static const double expected[] = {1, 1, 1, 0, -2.5, 1, 1, 1, 0, -2.5, 1};
    for (int i = 0; i < 11; i++) {
        const struct plim_given_value *value = plim_machine_given_value(&given, i);
        cr_expect(eq(dbl, value->number, expected[i]));
        cr_expect(eq(int, value->is_whole, value->number != -2.5));
    }
}

/* What was seen to go round a thousand times goes round ten times from then on; another place, or a new step, counts
 * from the beginning. */
Test(loops, end)
{
    int turned = 0;
    for (int i = 0; i < PLIM_LOOP_READS; i++) turned += plim_loops_turn("a.py:1", 0) + plim_loops_turn("b.py:1", i);
    cr_assert(eq(int, turned, 0));
    cr_expect(not(plim_loops_turn("a.py:1", 1)));
    for (int i = 0; i < PLIM_LOOP_READS - 1; i++) cr_assert(not(plim_loops_turn("a.py:1", 1)));
    cr_expect(plim_loops_turn("a.py:1", 1));
    for (int i = 0; i < PLIM_LOOP_READS_AGAIN; i++) cr_assert(not(plim_loops_turn("a.py:1", 1)));
    cr_expect(plim_loops_turn("a.py:1", 1));
}

static void expect_in_range(int64_t value)
{
    cr_assert(ge(i64, value, 0));
    cr_assert(le(i64, value, INT64_C(1) << 50));
}

Test(machine, whatever_a_program_wrote_is_read_in_range)
{
    make_machine("A100-SXM4-80GB", 2, 100 * MIB);
    cr_expect(eq(int, ftruncate(machine_fd, 0), -1), "its size is sealed");
    cr_expect(eq(int, ftruncate(machine_fd, 1 << 30), -1));
    srand(3);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof(*machine); i++)
            ((unsigned char *)machine)[i] = round % 4   ? (unsigned char)rand()
                                            : round % 8 ? 0xff
                                                        : 0x7f;
        for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
            struct plim_machine_process row;
            plim_machine_read_process(machine, i, &row);
            const int64_t numbers[] = {row.steps,
                                       row.epochs,
                                       row.launches,
                                       row.allocations,
                                       row.peak_all_bytes,
                                       row.peak_bytes[1],
                                       row.refusal.count,
                                       row.refusal.asked_bytes,
                                       row.at_peak[3].bytes,
                                       row.at_peak[3].count,
                                       (int64_t)row.leak_bytes,
                                       (int64_t)row.step_seconds};
            for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) expect_in_range(numbers[k]);
        }
        char notes[8][PLIM_MACHINE_NOTE_BYTES];
        uint32_t count = plim_machine_read_notes(machine, notes, 8);
        cr_assert(le(u32, count, 8));
        for (uint32_t i = 0; i < count; i++)
            cr_assert(lt(sz, strnlen(notes[i], PLIM_MACHINE_NOTE_BYTES), PLIM_MACHINE_NOTE_BYTES));
        int contexts;
        expect_in_range(plim_machine_read_peak(machine, 1, &contexts));
        expect_in_range(contexts);
        struct plim_machine_questions asked;
        plim_machine_read_questions(machine, &asked);
        cr_assert(le(u32, asked.count, PLIM_MACHINE_QUESTIONS));
        expect_in_range(asked.unlisted);
        for (uint32_t i = 0; i < asked.count; i++) {
            const struct plim_machine_question *row = &asked.rows[i];
            cr_assert(lt(sz, strnlen(row->place, PLIM_QUESTION_TEXT), PLIM_QUESTION_TEXT));
            cr_assert(lt(sz, strnlen(row->kernel, PLIM_QUESTION_TEXT), PLIM_QUESTION_TEXT));
            cr_assert(row->use >= PLIM_QUESTION_SHOWN && row->use <= PLIM_QUESTION_DECIDES);
            expect_in_range(row->count);
            expect_in_range(row->bytes);
            expect_in_range(row->turned);
        }
    }
    plim_machine_destroy(machine, machine_fd);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Programs that give memory back to the GPU and take it again, for days. */
Test(heap, addresses_do_not_run_out)
{
    uintptr_t kept, at;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_take(0, (size_t)MIB, &kept), GPU_OK));
    for (int i = 0; i < 100; i++) {
        struct heap_block tera = {.bytes = (size_t)1 << 40, .kind = HEAP_RESERVED};
        cr_assert(eq(int, plim_heap_add(&tera, &at), GPU_OK), "the %dth", i + 1);
        cr_assert(at > kept || at + tera.bytes <= kept);
        cr_assert(plim_heap_remove(at, HEAP_RESERVED, NULL));
    }
    plim_machine_destroy(machine, machine_fd);
}

Test(heap, large_requests_take_whole_pages)
{
    uintptr_t a, b;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_expect(eq(int, plim_heap_take(0, 3 * MIB, &a), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 4 * MIB));
    cr_expect(eq(int, plim_heap_take(0, 7 * MIB, &b), GPU_OUT_OF_MEMORY));
    cr_expect(eq(int, plim_heap_take(0, 6 * MIB, &b), GPU_OK));
    cr_expect(eq(int, plim_heap_free(a), GPU_OK));
    cr_expect(eq(int, plim_heap_free(a), GPU_INVALID_VALUE), "twice");
    cr_expect(eq(int, plim_heap_free(b + 512), GPU_INVALID_VALUE), "not its beginning");
    cr_expect(eq(int, plim_heap_free(b), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 0));
}

Test(heap, small_requests_share_pages)
{
    uintptr_t at[5];
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    for (int i = 0; i < 4; i++) cr_expect(eq(int, plim_heap_take(0, 512 * 1024, &at[i]), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 2 * MIB));
    cr_expect(eq(int, plim_heap_take(0, 1, &at[4]), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 4 * MIB));
    for (int i = 0; i < 5; i++) cr_expect(eq(int, plim_heap_free(at[i]), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 0));
}

Test(heap, an_address_is_found_wherever_it_points)
{
    uintptr_t at;
    struct heap_block block;
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_take(0, 3000, &at), GPU_OK));
    cr_expect(eq(int, plim_heap_find(at + 2999, &block) && block.at == at, 1));
    cr_expect(not(plim_heap_find(at + 3000, &block)));
    cr_expect(plim_heap_is_device(at) && !plim_heap_is_device((uintptr_t)&block));
}

/* So much is asked for and not there. */
static void run_out(int64_t bytes)
{
    uintptr_t at;
    cr_expect(eq(int, plim_heap_take(0, (size_t)bytes, &at), GPU_OUT_OF_MEMORY));
}

Test(out_of_memory, is_met_unmet_or_open)
{
    uintptr_t a, b;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    cr_assert(eq(int, plim_heap_take(0, 8 * (size_t)MIB, &a), GPU_OK));
    run_out(4 * MIB);
    cr_expect(eq(int, seen->pending, 1));
    cr_assert(eq(int, plim_heap_free(a), GPU_OK));
    cr_assert(eq(int, plim_heap_take(0, 4 * (size_t)MIB, &b), GPU_OK));
    cr_expect(eq(i64, seen->unmet, 0), "what was cached was given back");
    cr_expect(eq(int, seen->pending, 0));
    run_out(8 * MIB);
    run_out(8 * MIB);
    cr_expect(eq(i64, seen->unmet, 1), "refused twice");
    plim_self_goes_on();
    run_out(7 * MIB);
    plim_self_goes_on();
    cr_expect(eq(i64, seen->unmet, 2), "and went on without");
    cr_expect(eq(i64, seen->asked_bytes, 8 * MIB), "in whole pages");
    cr_expect(eq(i64, seen->free_bytes, 6 * MIB));
}

/* One after the other, more than there are rows. */
Test(machine, processes_that_have_ended_make_room)
{
    enum { MANY = PLIM_MACHINE_PROCESSES + 20 };
    make_machine("A100-SXM4-80GB", 1, 200 * MIB);
    machine->gpus[0].context_bytes = 20 * MIB;
    for (int i = 0; i < MANY; i++) {
        uintptr_t at;
        int status, child = fork();
        if (!child) _exit(plim_self_use(0) || plim_heap_take(0, 100 * (size_t)MIB, &at));
        cr_assert(eq(int, waitpid(child, &status, 0), child));
        cr_assert(zero(int, status), "process %d", i);
    }
    int contexts;
    cr_expect(eq(i64, plim_machine_read_peak(machine, 0, &contexts), 100 * MIB), "of one, without its context");
    cr_expect(eq(int, contexts, 1));
}

Test(machine, contexts_of_all_processes_but_one_are_of_the_program)
{
    make_machine("A100-SXM4-80GB", 1, 1000 * MIB);
    machine->gpus[0].context_bytes = 20 * MIB;
    int ready[2], contexts, child;
    char word;
    uintptr_t at;
    cr_assert(zero(int, pipe(ready)));
    child = fork();
    if (!child) {
        if (plim_self_use(0) || plim_heap_take(0, 100 * (size_t)MIB, &at) || write(ready[1], "y", 1) != 1) _exit(1);
        pause();
    }
    close(ready[1]);
    cr_assert(eq(long, (long)read(ready[0], &word, 1), 1));
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_take(0, 50 * (size_t)MIB, &at), GPU_OK));
    cr_expect(eq(i64, plim_machine_read_peak(machine, 0, &contexts), 170 * MIB));
    cr_expect(eq(int, contexts, 2));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* As PyTorch does where a convolution's workspace is refused. */
Test(out_of_memory, what_another_plan_does_without_is_told_from_the_rest)
{
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    plim_self_plans();
    cr_expect(eq(i64, seen->unmet, 0));
    run_out(20 * MIB);
    run_out(20 * MIB);
    plim_self_plans();
    plim_self_plans();
    plim_self_goes_on();
    cr_expect(eq(i64, seen->unmet, 1));
    cr_expect(eq(i64, seen->replanned, 1));
    run_out(20 * MIB);
    plim_self_goes_on();
    cr_expect(eq(i64, seen->unmet, 2));
    cr_expect(eq(i64, seen->replanned, 1), "something else came next");
}

/* As PyTorch's allocator says it, after a refusal or by a limit of its own. */
Test(out_of_memory, what_the_framework_gives_up_counts_once)
{
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    plim_self_gives_up(0, 20 * MIB, 10 * MIB); /* it is in no machine */
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    run_out(20 * MIB);
    run_out(20 * MIB);
    plim_self_gives_up(0, 20 * MIB, 10 * MIB);
    cr_expect(eq(i64, seen->unmet, 1));
    cr_expect(eq(i64, seen->limited, 0), "the GPU did not have it");
    plim_self_goes_on();
    plim_self_gives_up(0, 4 * MIB, 10 * MIB);
    cr_expect(eq(i64, seen->unmet, 2), "also where nothing follows");
    plim_self_plans();
    cr_expect(eq(i64, seen->count, 3));
    cr_expect(eq(i64, seen->unmet, 2));
    cr_expect(eq(i64, seen->limited, 1));
    cr_expect(eq(i64, seen->replanned, 1));
    cr_expect(eq(i64, seen->asked_bytes, 4 * MIB));
}

/* As the allocator of JAX and TensorFlow asks: for more than it needs, then for a tenth less. */
Test(out_of_memory, is_met_by_nearly_as_much_at_once)
{
    uintptr_t at;
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    run_out(120 * MIB);
    run_out(108 * MIB);
    cr_assert(eq(int, plim_heap_take(0, 96 * (size_t)MIB, &at), GPU_OK));
    plim_self_goes_on();
    cr_expect(eq(i64, seen->unmet, 0));
    run_out(8 * MIB);
    cr_assert(eq(int, plim_heap_take(0, 4 * (size_t)MIB, &at), GPU_OK), "half of it is something else");
    plim_self_goes_on();
    cr_expect(eq(i64, seen->unmet, 1));
}

Test(pool, keeps_what_is_freed_up_to_its_threshold)
{
    uintptr_t at;
    uint64_t bytes;
    make_machine("A100-SXM4-80GB", 1, 200 * MIB);
    struct plim_memory_pool *pool = plim_pool_default(0);
    cr_assert(eq(int, plim_pool_take(pool, 40 * (size_t)MIB, &at), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 64 * MIB));
    cr_expect(eq(int, plim_pool_free(at), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 64 * MIB));
    bytes = UINT64_MAX;
    cr_expect(eq(int, plim_pool_set(pool, GPU_POOL_RELEASE_THRESHOLD, &bytes), GPU_OK));
    plim_pool_release_unused(0);
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 64 * MIB));
    bytes = 0;
    cr_expect(eq(int, plim_pool_set(pool, GPU_POOL_RELEASE_THRESHOLD, &bytes), GPU_OK));
    plim_pool_release_unused(0);
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 0));
    cr_expect(eq(int, plim_pool_get(pool, GPU_POOL_USED_HIGH, &bytes), GPU_OK));
    cr_expect(eq(u64, bytes, (uint64_t)(40 * MIB)));
    cr_expect(eq(int, plim_pool_take(pool, 199 * (size_t)MIB, &at), GPU_OK), "by pages");
    cr_expect(eq(int, plim_pool_take(pool, 4 * (size_t)MIB, &at), GPU_OUT_OF_MEMORY));
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* A fat binary's headers: kind, compute capability; the code itself is not looked at. */
static void fat_binary(uint64_t *out, size_t count, const int (*entries)[2])
{
    unsigned char *at = (unsigned char *)out;
    memset(out, 0, 16 + count * 64);
    const uint32_t magic = 0xba55ed50;
    const uint64_t bytes = count * 64;
    memcpy(at, &magic, 4);
    at[4] = 1;
    at[6] = 16;
    memcpy(at + 8, &bytes, 8);
    for (size_t i = 0; i < count; i++) {
        unsigned char *entry = at + 16 + i * 64;
        entry[0] = (unsigned char)entries[i][0];
        entry[4] = 48; /* its header */
        entry[8] = 16; /* what follows */
        entry[28] = (unsigned char)entries[i][1];
    }
}

Test(module, a_gpu_runs_what_was_compiled_for_its_generation)
{
    enum { PTX = 1, ELF = 2 };
    uint64_t image[64];
    fat_binary(image, 3, (const int[3][2]){{ELF, 80}, {ELF, 86}, {PTX, 90}});
    struct plim_fat_binary *module = plim_fat_binary_read(image, PLIM_UNKNOWN_BYTES);
    cr_expect(eq(int, plim_fat_binary_code(module, 80), 80));
    cr_expect(eq(int, plim_fat_binary_code(module, 89), 86));
    cr_expect(eq(int, plim_fat_binary_code(module, 75), 0), "nothing for it");
    cr_expect(eq(int, plim_fat_binary_code(module, 90), 90), "by its PTX");
    cr_expect(eq(int, plim_fat_binary_code(module, 120), 120), "by older PTX");
    free(module);
}

Test(kernel, its_name_tells_what_it_may_write)
{
    static const struct {
        const char *name;
        int parameters;
        uint32_t written, structures;
    } cases[] = {
        {"_Z4copyPKfPfi", 3, 2, 0}, /* copy(float const*, float*, int) */
        {"_Z1fIiEvPT_S1_PKS0_", 3, 3, 0},
        /* at::native::vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1>> */
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
         "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
         3, 4, 2},
        {"_Z1f5StateIlEPKl", 2, 0, 1}, /* f(State<long>, long const*) */
        /* f(at::cuda::detail::TensorInfo<long, int>, at::cuda::detail::TensorInfo<long const, int>) */
        {"_Z1fN2at4cuda6detail10TensorInfoIliEENS2_IKliEE", 2, 0, 1},
        {"triton_poi_fused_add_0", 0, 0, 0}, /* C: not known */
    };
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_signature signature = plim_signature_of(cases[i].name);
        cr_expect(eq(int, signature.parameters, cases[i].parameters), "%s", cases[i].name);
        cr_expect(eq(u32, signature.written, cases[i].written), "%s", cases[i].name);
        cr_expect(eq(u32, signature.structures, cases[i].structures), "%s", cases[i].name);
    }
}

/* Behind attention's parameters lies what else was on the stack: old pointers, to memory that has been given anew. */
Test(kernel, attention_writes_what_its_structure_holds)
{
    static const struct {
        const char *name;
        size_t output, behind; /* in words: the output, and the first that is no pointer of its own */
    } cases[] = {
        {"_Z39fmha_cutlassF_f32_aligned_64x64_rf_sm80N22PyTorchMemEffAttention15AttentionKernelIfN7cutlass4arch"
         "4Sm80ELb1ELi64ELi64ELi64ELb1ELb1EE6ParamsE",
         8, 11},
        {"_Z36fmha_cutlassB_f32_aligned_64x64_sm80N22PyTorchMemEffAttention23AttentionBackwardKernelIN7"
         "cutlass4arch4Sm80EfLb1ELb0ELb0ELi64ELi64ELi64ELb0EE6ParamsE",
         10, 17},
        {"_Z16flash_fwd_kernelN13pytorch_flash16Flash_fwd_paramsE", 14, 64}};
    static uintptr_t parameters[512];
    uintptr_t written[PLIM_WRITES];
    uintptr_t memory = 0;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_take(0, (size_t)MIB, &memory), GPU_OK));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_kernel kernel = {.name = cases[i].name, .signature = plim_signature_of(cases[i].name)};
        void *arguments[1] = {parameters};
        memset(parameters, 0, sizeof(parameters));
        parameters[cases[i].output] = memory + 64;
        parameters[cases[i].behind] = memory + 1024;
        size_t count = plim_writes_find(&kernel, &(struct gpu_dim3){1, 1, 1}, arguments, written);
        cr_expect(eq(sz, count, 1), "%s", kernel.name);
        cr_expect(eq(u64, written[0], memory + 64), "%s", kernel.name);
    }
}

Test(event, every_launch_between_two_takes_the_same)
{
    struct plim_event *events[4];
    double seconds[3];
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    const struct plim_work work = {.what = "a product"};
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(int, plim_event_create(0, &events[i]), 0));
        cr_assert(eq(int, plim_event_record(events[i], plim_stream_of(NULL)), 0));
        if (i == 1) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* no time of the GPU's */
        for (int n = 0; n < (i == 2 ? 2 : 1); n++) cr_assert(eq(int, plim_library_launch(&work), 0));
    }
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, plim_event_seconds(events[i], events[i + 1], &seconds[i]), 0));
    cr_expect(eq(dbl, seconds[0], seconds[1]));
    cr_expect(gt(dbl, seconds[2], 1.5 * seconds[0]));
    for (int i = 0; i < 4; i++) plim_event_destroy(events[i]);
}

/* --- properties: sizes and offsets read off the headers of CUDA 11.8, 12.1, 12.9 and 13.0 ---------- */

struct layout {
    int major;
    size_t bytes, multiprocessors, shared_optin, reserved_shared;
};

static const struct layout layouts[] = {
    {11, 728, 388, 696, 720}, {12, 1032, 388, 696, 720}, {13, 1008, 384, 672, 696}};

Test(attribute, properties_have_the_layout_of_each_version)
{
    make_machine("H100-SXM", 1, 100 * MIB);
    for (size_t i = 0; i < 3; i++) {
        const struct layout *l = &layouts[i];
        unsigned char out[1200];
        int multiprocessors;
        size_t total, optin, reserved;
        memset(out, 0xaa, sizeof(out));
        cr_assert(eq(int, plim_attribute_properties(0, l->major, out), GPU_OK));
        memcpy(&total, out + 288, sizeof(total));
        memcpy(&multiprocessors, out + l->multiprocessors, sizeof(multiprocessors));
        memcpy(&optin, out + l->shared_optin, sizeof(optin));
        memcpy(&reserved, out + l->reserved_shared, sizeof(reserved));
        cr_expect(eq(sz, total, (size_t)(100 * MIB)));
        cr_expect(eq(int, multiprocessors, 132));
        cr_expect(eq(sz, optin, 227 * 1024));
        cr_expect(eq(sz, reserved, 1024));
        cr_expect(ne(int, out[l->bytes - 1], 0xaa), "CUDA %d: written to its end", l->major);
        cr_expect(eq(int, out[l->bytes], 0xaa), "CUDA %d: and no further", l->major);
    }
}
