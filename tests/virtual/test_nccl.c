/* NCCL between ranks of one process, of its threads, and of several, on the test's own machine. */
#include "devices/virtual/nccl/exchange.h"
#include "devices/virtual/nccl/nccl.h"
#include "devices/virtual/work/transfer.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The functions of NCCL and CUDA that are called. */
struct unique_id { char bytes[128]; };
struct config { size_t bytes; unsigned magic, version; int blocking; };
int ncclGetUniqueId(struct unique_id *id);
int ncclCommInitRank(struct nccl_comm **out, int ranks, struct unique_id id, int rank);
int ncclCommInitRankConfig(struct nccl_comm **, int ranks, struct unique_id, int rank,
                           const struct config *);
int ncclCommInitAll(struct nccl_comm **out, int count, const int *devices);
int ncclCommSplit(struct nccl_comm *, int color, int key, struct nccl_comm **,
                  const struct config *);
int ncclCommShrink(struct nccl_comm *, const int *excluded, int count, struct nccl_comm **,
                   const struct config *, int flags);
int ncclCommDestroy(struct nccl_comm *comm);
int ncclCommAbort(struct nccl_comm *comm);
int ncclCommCount(const struct nccl_comm *comm, int *out);
int ncclCommUserRank(const struct nccl_comm *comm, int *out);
int ncclCommGetAsyncError(struct nccl_comm *comm, int *out);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int type, int operation, struct nccl_comm *,
                  void *);
int ncclBroadcast(const void *, void *, size_t, int type, int root, struct nccl_comm *, void *);
int ncclAllGather(const void *, void *, size_t, int type, struct nccl_comm *, void *);
int ncclSend(const void *, size_t, int type, int peer, struct nccl_comm *, void *);
int ncclRecv(void *, size_t, int type, int peer, struct nccl_comm *, void *);
int cudaSetDevice(int device);
int cudaMalloc(void **out, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaStreamSynchronize(void *stream);

static const int64_t GIB = 1 << 30;
enum { RANKS = 4, DEFAULT = 4 };

static void make_gpus(int count) { make_machine("A100-SXM4-80GB", count, 10 * GIB); }

/* Memory of the current GPU with one number in it. */
static void *number(int64_t value)
{
    void *at = NULL;
    cr_assert(eq(int, cudaMalloc(&at, 1024), 0));
    cr_assert(eq(int, cudaMemcpy(at, &value, sizeof(value), DEFAULT), 0));
    return at;
}

static int64_t read_number(const void *at)
{
    int64_t value = -1;
    cr_assert(eq(int, cudaMemcpy(&value, at, sizeof(value), DEFAULT), 0));
    return value;
}

/* A copy to the host waits for the ranks, and fails if one has ended. */
static void expect_no_answer(const void *at)
{
    enum { LAUNCH_FAILED = 719 };
    int64_t value = -1;
    cr_expect(eq(int, cudaMemcpy(&value, at, sizeof(value), DEFAULT), LAUNCH_FAILED));
    cr_expect(eq(i64, value, 0));
}

static int error_of(struct nccl_comm *comm)
{
    int error = -1;
    cr_assert(eq(int, ncclCommGetAsyncError(comm, &error), 0));
    return error;
}

/* --- one process, one thread ------------------------------------------------------------------ */

static struct nccl_comm *comms[RANKS];
static void *buffers[RANKS];

static void make_ranks(void)
{
    make_gpus(RANKS);
    cr_assert(eq(int, ncclCommInitAll(comms, RANKS, NULL), 0));
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        buffers[i] = number(10 + i);
    }
}

static void reduce_all(struct nccl_comm **of, int count)
{
    ncclGroupStart();
    for (int i = 0; i < count; i++)
        ncclAllReduce(buffers[i], buffers[i], 1, NCCL_INT64, NCCL_SUM, of[i], NULL);
    cr_assert(eq(int, ncclGroupEnd(), 0));
}

Test(nccl, a_thread_drives_all_ranks_in_groups)
{
    make_ranks();
    reduce_all(comms, RANKS);
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cr_expect(eq(i64, read_number(buffers[i]), 10 + 11 + 12 + 13));
        ncclCommDestroy(comms[i]);
    }
}

Test(nccl, what_depends_on_another_rank_of_the_group_is_no_deadlock)
{
    make_ranks();
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < 2; k++)
            ncclAllReduce(buffers[i], buffers[i], 1, NCCL_INT64, NCCL_SUM, comms[i], NULL);
    cr_assert(eq(int, ncclGroupEnd(), 0));
    cudaSetDevice(2);
    cr_expect(eq(i64, read_number(buffers[2]), RANKS * (10 + 11 + 12 + 13)));
}

Test(nccl, results_outlive_their_communicator)
{
    make_ranks();
    reduce_all(comms, RANKS);
    for (int i = 0; i < RANKS; i++) ncclCommDestroy(comms[i]);
    cudaSetDevice(1);
    cr_expect(eq(i64, read_number(buffers[1]), 46));
}

/* NCCL makes its channels when a communicator is first used. */
Test(nccl, holds_memory_from_the_first_use_to_the_end)
{
    static const int64_t HELD = 64 << 20;
    make_ranks();
    for (int i = 0; i < RANKS; i++) machine->gpus[i].communicator_bytes = HELD;
    int64_t before = plim_machine_free_bytes(machine, 1);
    for (int times = 0; times < 2; times++) {
        reduce_all(comms, RANKS);
        cr_expect(eq(i64, before - plim_machine_free_bytes(machine, 1), HELD));
    }
    for (int i = 0; i < RANKS; i++) ncclCommDestroy(comms[i]);
    cr_expect(eq(i64, plim_machine_free_bytes(machine, 1), before));
}

Test(nccl, its_memory_may_be_what_the_gpu_does_not_have)
{
    make_ranks();
    machine->gpus[0].communicator_bytes = 20 * GIB;
    cr_expect(eq(int, ncclAllReduce(buffers[0], buffers[0], 1, NCCL_INT64, NCCL_SUM, comms[0], NULL), NCCL_CUDA_ERROR));
    cr_expect(eq(int, plim_self_process()->refusal.pending, 1));
}

Test(nccl, an_unknown_part_makes_a_sum_unknown)
{
    make_ranks();
    cudaSetDevice(3);
    cudaMalloc(&buffers[3], 1024);
    reduce_all(comms, RANKS);
    cudaSetDevice(0);
    cr_expect(eq(i64, read_number(buffers[0]), 0));
}

Test(nccl, messages_are_in_order)
{
    make_ranks();
    void *got[2];
    cudaSetDevice(1);
    for (int i = 0; i < 2; i++) got[i] = number(0);
    ncclGroupStart();
    ncclSend(buffers[0], 1, NCCL_INT64, 1, comms[0], NULL);
    ncclSend(buffers[2], 1, NCCL_INT64, 1, comms[0], NULL);
    ncclRecv(got[0], 1, NCCL_INT64, 0, comms[1], NULL);
    ncclRecv(got[1], 1, NCCL_INT64, 0, comms[1], NULL);
    cr_assert(eq(int, ncclGroupEnd(), 0));
    cr_expect(eq(i64, read_number(got[0]), 10));
    cr_expect(eq(i64, read_number(got[1]), 12));
}

Test(nccl, splits_into_colors_ordered_by_key)
{
    make_ranks();
    struct nccl_comm *halves[RANKS];
    int count, rank;
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++) ncclCommSplit(comms[i], i % 2, -i, &halves[i], NULL);
    cr_assert(eq(int, ncclGroupEnd(), 0));
    for (int i = 0; i < RANKS; i++) {
        ncclCommCount(halves[i], &count);
        ncclCommUserRank(halves[i], &rank);
        cr_expect(eq(int, count, 2));
        cr_expect(eq(int, rank, i < 2), "rank %d", i);
    }
    reduce_all(halves, RANKS);
    cudaSetDevice(3);
    cr_expect(eq(i64, read_number(buffers[3]), 11 + 13));
}

Test(nccl, splits_and_leaves_some_out)
{
    make_ranks();
    struct nccl_comm *some[RANKS];
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++) ncclCommSplit(comms[i], i < 3 ? 7 : -1, 0, &some[i], NULL);
    cr_assert(eq(int, ncclGroupEnd(), 0));
    cr_expect(eq(ptr, some[3], NULL));
    reduce_all(some, 3);
    cudaSetDevice(0);
    cr_expect(eq(i64, read_number(buffers[0]), 33));
}

Test(nccl, shrinks_without_the_ranks_left_out)
{
    make_ranks();
    struct nccl_comm *rest[RANKS];
    const int excluded[] = {1};
    int k = 0, rank;
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        if (i != 1) ncclCommShrink(comms[i], excluded, 1, &rest[k++], NULL, 0);
    cr_assert(eq(int, ncclGroupEnd(), 0));
    ncclCommUserRank(rest[1], &rank);
    cr_expect(eq(int, rank, 1));
    buffers[1] = buffers[2];
    buffers[2] = buffers[3];
    reduce_all(rest, 3);
    cudaSetDevice(0);
    cr_expect(eq(i64, read_number(buffers[0]), 10 + 12 + 13));
}

Test(nccl, many_messages_are_forgotten_on_the_way)
{
    make_ranks();
    static char large[1 << 20];
    void *at[2];
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaMalloc(&at[i], sizeof(large));
    }
    for (int k = 0; k < 100; k++) {
        large[5] = (char)k;
        cudaSetDevice(0);
        cudaMemcpy(at[0], large, sizeof(large), DEFAULT);
        ncclGroupStart();
        for (int i = 0; i < RANKS; i++)
            ncclBroadcast(at[0], at[i == 0 ? 0 : 1], sizeof(large), NCCL_UINT8, 0, comms[i], NULL);
        cr_assert(eq(int, ncclGroupEnd(), 0));
    }
    cudaSetDevice(1);
    cudaMemcpy(large, at[1], sizeof(large), DEFAULT);
    cr_expect(eq(chr, large[5], 99));
    int messages = 0;
    for (const struct plim_exchange_message *m = comms[1]->inbox.newest; m; m = m->next) messages++;
    cr_expect(lt(int, messages, 40));
}

Test(nccl, a_rank_without_a_gpu_is_refused)
{
    struct unique_id id;
    struct nccl_comm *comm;
    make_gpus(2);
    ncclGetUniqueId(&id);
    cr_expect(eq(int, ncclCommInitRank(&comm, 3, id, 0), NCCL_INVALID_USAGE));
    cr_expect(eq(int, machine->note_count, 1));
}

Test(nccl, two_ranks_on_one_gpu_are_refused)
{
    const int devices[] = {0, 0};
    make_gpus(2);
    cr_expect(eq(int, ncclCommInitAll(comms, 2, devices), NCCL_INVALID_USAGE));
}

Test(nccl, without_blocking_it_is_asked_whether_all_have_come)
{
    struct unique_id id;
    struct config config = {.blocking = 0};
    make_gpus(2);
    ncclGetUniqueId(&id);
    cr_expect(eq(int, ncclCommInitRankConfig(&comms[0], 2, id, 0, &config), NCCL_IN_PROGRESS));
    cr_expect(eq(int, error_of(comms[0]), NCCL_IN_PROGRESS));
    cudaSetDevice(1);
    cr_expect(eq(int, ncclCommInitRankConfig(&comms[1], 2, id, 1, &config), NCCL_OK));
    cr_expect(eq(int, error_of(comms[0]), NCCL_OK));
}

/* --- threads ---------------------------------------------------------------------------------- */

static struct unique_id meeting;

static void *be_a_rank(void *user)
{
    int rank = (int)(intptr_t)user;
    struct nccl_comm *comm;
    cudaSetDevice(rank);
    if (ncclCommInitRank(&comm, RANKS, meeting, rank)) return NULL;
    void *at = number(rank);
    for (int k = 0; k < 50; k++) {
        ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_MAX, comm, NULL);
        cudaStreamSynchronize(NULL);
    }
    int64_t result = read_number(at);
    ncclCommDestroy(comm);
    return (void *)(intptr_t)result;
}

Test(nccl, threads_are_ranks)
{
    pthread_t threads[RANKS];
    make_gpus(RANKS);
    ncclGetUniqueId(&meeting);
    for (int i = 0; i < RANKS; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, be_a_rank, (void *)(intptr_t)i), 0));
    for (int i = 0; i < RANKS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cr_expect(eq(long, (long)(intptr_t)result, RANKS - 1));
    }
}

static void *wait_in_vain(void *user)
{
    cudaSetDevice(0);
    ncclAllReduce(user, user, 1, NCCL_INT64, NCCL_SUM, comms[0], NULL);
    cudaStreamSynchronize(NULL);
    return NULL;
}

Test(nccl, an_abort_ends_a_wait)
{
    pthread_t thread;
    make_ranks();
    cr_assert(eq(int, pthread_create(&thread, NULL, wait_in_vain, buffers[0]), 0));
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    cr_expect(eq(int, ncclCommAbort(comms[0]), 0));
    pthread_join(thread, NULL);
}

/* --- processes -------------------------------------------------------------------------------- */

static int channel[2]; /* through which a child gets an id */

static struct unique_id make_id(void)
{
    struct unique_id id;
    cr_assert(eq(int, ncclGetUniqueId(&id), 0));
    cr_assert(eq(long, write(channel[1], &id, sizeof(id)), (long)sizeof(id)));
    return id;
}

/* A child that is rank 1 of 2 on the second GPU and then does as it is told. */
static pid_t start_child(void act(struct nccl_comm *comm, void *at))
{
    cr_assert(eq(int, pipe(channel), 0));
    pid_t pid = fork();
    if (pid) return pid;
    struct unique_id id;
    struct nccl_comm *comm;
    if (read(channel[0], &id, sizeof(id)) != sizeof(id)) _exit(1);
    cudaSetDevice(1);
    if (ncclCommInitRank(&comm, 2, id, 1)) _exit(2);
    act(comm, number(5));
    _exit(0);
}

static void reduce(struct nccl_comm *comm, void *at)
{
    ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_SUM, comm, NULL);
    if (read_number(at) != 12) _exit(3);
    ncclCommDestroy(comm);
}

Test(nccl, processes_are_ranks)
{
    int status;
    make_gpus(2);
    pid_t pid = start_child(reduce);
    struct unique_id id = make_id();
    cr_assert(eq(int, ncclCommInitRank(&comms[0], 2, id, 0), 0));
    void *at = number(7);
    ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_SUM, comms[0], NULL);
    waitpid(pid, &status, 0);
    cr_expect(eq(int, status, 0));
    cr_expect(eq(i64, read_number(at), 12), "also of a rank that has ended");
    cr_expect(eq(int, error_of(comms[0]), 0));
}

static void die(struct nccl_comm *comm, void *at)
{
    char byte;
    (void)comm;
    (void)at;
    if (read(channel[0], &byte, 1) == 1) raise(SIGKILL);
}

Test(nccl, a_killed_rank_is_an_error_and_no_hang)
{
    make_gpus(2);
    start_child(die);
    struct unique_id id = make_id();
    cr_assert(eq(int, ncclCommInitRank(&comms[0], 2, id, 0), 0));
    cr_assert(eq(long, write(channel[1], "d", 1), 1));
    void *at = number(7);
    cr_expect(eq(int, ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_SUM, comms[0], NULL), 0));
    cudaStreamSynchronize(NULL);
    cr_expect(eq(int, error_of(comms[0]), NCCL_REMOTE_ERROR), "the child is a zombie still");
    expect_no_answer(at);
    cr_expect(eq(int, ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_SUM, comms[0], NULL),
                 NCCL_REMOTE_ERROR));
    cr_expect(eq(int, machine->note_count, 1));
}

static void leave(struct nccl_comm *comm, void *at)
{
    (void)at;
    ncclCommDestroy(comm);
    pause();
}

Test(nccl, a_rank_that_left_is_an_error)
{
    make_gpus(2);
    pid_t pid = start_child(leave);
    struct unique_id id = make_id();
    cr_assert(eq(int, ncclCommInitRank(&comms[0], 2, id, 0), 0));
    void *at = number(7);
    ncclAllReduce(at, at, 1, NCCL_INT64, NCCL_SUM, comms[0], NULL);
    expect_no_answer(at);
    cr_expect(eq(int, error_of(comms[0]), NCCL_REMOTE_ERROR));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(nccl, a_rank_that_never_comes_is_waited_for_so_long)
{
    struct unique_id id;
    make_gpus(2);
    setenv("PLIMSOLL_NCCL_WAIT", "1", 1);
    ncclGetUniqueId(&id);
    cr_expect(eq(int, ncclCommInitRank(&comms[0], 2, id, 0), NCCL_REMOTE_ERROR));
}

Test(nccl, an_id_whose_maker_has_ended_is_an_error)
{
    struct unique_id id;
    int status;
    make_gpus(2);
    cr_assert(eq(int, pipe(channel), 0));
    pid_t pid = fork();
    if (!pid) {
        ncclGetUniqueId(&id);
        _exit(write(channel[1], &id, sizeof(id)) != sizeof(id));
    }
    waitpid(pid, &status, 0);
    cr_assert(eq(int, status, 0));
    cr_assert(eq(long, read(channel[0], &id, sizeof(id)), (long)sizeof(id)));
    cr_expect(eq(int, ncclCommInitRank(&comms[0], 2, id, 0), NCCL_REMOTE_ERROR));
}

/* --- numbers ---------------------------------------------------------------------------------- */

static uint16_t sum_of_halves(uint16_t a, uint16_t b, int type)
{
    cr_assert(plim_nccl_reduce(&a, &b, sizeof(a), type, NCCL_SUM));
    return a;
}

Test(numbers, half_precision_rounds_to_even)
{
    static const struct { uint16_t a, b, sum; } cases[] = {
        {0x3c00, 0x3c00, 0x4000}, /* 1 + 1 */
        {0x0001, 0x0001, 0x0002}, /* the smallest */
        {0x03ff, 0x0001, 0x0400}, /* the largest subnormal and the smallest */
        {0x3c00, 0x1000, 0x3c00}, /* 1 + half a last bit: to even */
        {0x3c01, 0x1000, 0x3c02},
        {0x7bff, 0x7bff, 0x7c00}, /* too large */
        {0x7bff, 0x4b80, 0x7bff}, /* 65504 + 15: stays */
        {0x7bff, 0x4c00, 0x7c00}, /* 65504 + 16: halfway to what would be 65536 */
        {0xbc00, 0x3c00, 0x0000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_expect(eq(u16, sum_of_halves(cases[i].a, cases[i].b, NCCL_FLOAT16), cases[i].sum),
                  "case %zu", i);
    uint16_t none = sum_of_halves(0x7c00, 0xfc00, NCCL_FLOAT16); /* infinity - infinity */
    cr_expect(lt(int, 0x7c00, none & 0x7fff));
}

Test(numbers, bfloat_rounds_to_even)
{
    cr_expect(eq(u16, sum_of_halves(0x3f80, 0x3f80, NCCL_BFLOAT16), 0x4000));
    cr_expect(eq(u16, sum_of_halves(0x3f80, 0x3b80, NCCL_BFLOAT16), 0x3f80), "1 + 2^-8");
    cr_expect(eq(u16, sum_of_halves(0x3f81, 0x3b80, NCCL_BFLOAT16), 0x3f82));
}

Test(numbers, integers_compare_with_their_sign)
{
    int8_t a[] = {-1, 100}, b[] = {1, 100};
    uint8_t c[] = {255}, d[] = {1};
    cr_assert(plim_nccl_reduce(a, b, sizeof(a), NCCL_INT8, NCCL_MAX));
    cr_expect(eq(int, a[0], 1));
    cr_assert(plim_nccl_reduce(c, d, sizeof(c), NCCL_UINT8, NCCL_MAX));
    cr_expect(eq(int, c[0], 255));
    cr_assert(plim_nccl_reduce(a, b, sizeof(a), NCCL_INT8, NCCL_SUM));
    cr_expect(eq(int, a[1], -56), "wraps around");
}

Test(numbers, what_is_not_computed_says_so)
{
    uint8_t a = 1, b = 1;
    cr_expect(not(plim_nccl_reduce(&a, &b, 1, NCCL_FLOAT8_E4M3, NCCL_SUM)));
    cr_expect(not(plim_nccl_reduce(&a, &b, 1, NCCL_UINT8, NCCL_OPERATIONS)));
    cr_expect(eq(sz, plim_nccl_type_bytes(NCCL_TYPES), 0));
}
