/* What plimsoll and the processes of a program share: GPUs, what each process has of them, notes, questions. */
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/questions/loops.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <signal.h>
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
        bool took = plim_machine_allocate(machine, process, 0, 70 * MIB);
        if (write(ready[1], took ? "y" : "n", 1) != 1 || read(go[0], &byte, 1) != 1) _exit(1);
        _exit(0); /* without a word */
    }
    cr_assert(eq(long, read(ready[0], &byte, 1), 1));
    cr_assert(eq(chr, byte, 'y'));
    struct plim_machine_process *process = plim_machine_enter(machine);
    cr_expect(not(plim_machine_allocate(machine, process, 0, 40 * MIB)));
    cr_expect(eq(i64, plim_machine_free_bytes(machine, 0), 30 * MIB));
    cr_assert(eq(long, write(go[1], "g", 1), 1));
    waitpid(pid, NULL, 0);
    cr_expect(plim_machine_allocate(machine, process, 0, 100 * MIB));
    cr_expect(eq(i64, machine->gpus[0].peak_bytes, 100 * MIB));
    plim_machine_destroy(machine, machine_fd);
}

/* What a process has of one GPU is no part of what it has of another. */
Test(machine, allocations_are_counted_for_each_gpu)
{
    struct plim_machine_process row;
    make_machine("A100-SXM4-80GB", 2, 100 * MIB);
    struct plim_machine_process *process = plim_machine_enter(machine);
    for (int i = 0; i < 5; i++) {
        int gpu = i % 2;
        cr_assert(plim_machine_allocate(machine, process, gpu, 16 * MIB));
        plim_machine_count(machine, process, gpu, 16 * MIB, 1);
    }
    plim_machine_free(machine, process, 0, 16 * MIB);
    plim_machine_count(machine, process, 0, 16 * MIB, -1);
    plim_machine_read_process(machine, 0, &row);
    cr_expect(eq(i64, row.at_peak[0][4].count, 3));
    cr_expect(eq(i64, row.at_peak[0][4].bytes, 48 * MIB));
    cr_expect(eq(i64, row.live[0][4].count, 2));
    cr_expect(eq(i64, row.at_peak[1][4].count, 2));
    cr_expect(eq(i64, row.peak_all_bytes, 80 * MIB));
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

/* One after the other, more than there are rows. */
Test(machine, processes_that_have_ended_make_room)
{
    enum { MANY = PLIM_MACHINE_PROCESSES + 20 };
    make_machine("A100-SXM4-80GB", 1, 200 * MIB);
    machine->gpus[0].context_bytes = 20 * MIB;
    for (int i = 0; i < MANY; i++) {
        uintptr_t at;
        int status, child = fork();
        if (!child) _exit(plim_self_use(0) || plim_heap_allocate(0, 100 * (size_t)MIB, &at));
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
        if (plim_self_use(0) || plim_heap_allocate(0, 100 * (size_t)MIB, &at) || write(ready[1], "y", 1) != 1) _exit(1);
        pause();
    }
    close(ready[1]);
    cr_assert(eq(long, (long)read(ready[0], &word, 1), 1));
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, 50 * (size_t)MIB, &at), GPU_OK));
    cr_expect(eq(i64, plim_machine_read_peak(machine, 0, &contexts), 170 * MIB));
    cr_expect(eq(int, contexts, 2));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* --- values that only a real GPU knows -------------------------------------------------------- */

static void ask_bytes(const char *place, int use, int64_t bytes)
{
    struct plim_machine_question question = {.kernel = "k", .use = use, .bytes = bytes};
    snprintf(question.place, sizeof(question.place), "%s", place);
    plim_machine_add_question(machine, &question);
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

static bool turns(const char *place, int64_t step) { return plim_loops_should_end(place, step, PLIM_LOOP_READS); }

/* What was seen to go round a thousand times goes round ten times from then on; another place, or a new step, counts
 * from the beginning. */
Test(loops, end)
{
    int turned = 0;
    for (int i = 0; i < PLIM_LOOP_READS; i++) turned += turns("a.py:1", 0) + turns("b.py:1", i);
    cr_assert(eq(int, turned, 0));
    cr_expect(not(turns("a.py:1", 1)));
    for (int i = 0; i < PLIM_LOOP_READS - 1; i++) cr_assert(not(turns("a.py:1", 1)));
    cr_expect(turns("a.py:1", 1));
    for (int i = 0; i < PLIM_LOOP_READS_AGAIN; i++) cr_assert(not(turns("a.py:1", 1)));
    cr_expect(turns("a.py:1", 1));
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
                                       row.at_peak[1][3].bytes,
                                       row.at_peak[1][3].count,
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
