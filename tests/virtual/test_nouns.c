/* The parts of the virtual GPU, each for itself; what programs see of them is tested by programs. */
#include "devices/virtual/machine/attribute.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/pool.h"
#include "devices/virtual/questions/loops.h"
#include "devices/virtual/work/event_time.h"
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

/* --- memory ----------------------------------------------------------------------------------- */

/* Programs that give memory back to the GPU and take it again, for days. */
Test(heap, addresses_do_not_run_out)
{
    uintptr_t kept, at;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, (size_t)MIB, &kept), GPU_OK));
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
    cr_expect(eq(int, plim_heap_allocate(0, 3 * MIB, &a), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 4 * MIB));
    cr_expect(eq(int, plim_heap_allocate(0, 7 * MIB, &b), GPU_OUT_OF_MEMORY));
    cr_expect(eq(int, plim_heap_allocate(0, 6 * MIB, &b), GPU_OK));
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
    for (int i = 0; i < 4; i++) cr_expect(eq(int, plim_heap_allocate(0, 512 * 1024, &at[i]), GPU_OK));
    cr_expect(eq(i64, machine->gpus[0].held_bytes, 2 * MIB));
    cr_expect(eq(int, plim_heap_allocate(0, 1, &at[4]), GPU_OK));
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
    cr_assert(eq(int, plim_heap_allocate(0, 3000, &at), GPU_OK));
    cr_expect(eq(int, plim_heap_find(at + 2999, &block) && block.at == at, 1));
    cr_expect(not(plim_heap_find(at + 3000, &block)));
    cr_expect(plim_heap_is_device(at) && !plim_heap_is_device((uintptr_t)&block));
}

/* So much is asked for and not there. */
static void run_out(int64_t bytes)
{
    uintptr_t at;
    cr_expect(eq(int, plim_heap_allocate(0, (size_t)bytes, &at), GPU_OUT_OF_MEMORY));
}

Test(out_of_memory, is_met_unmet_or_open)
{
    uintptr_t a, b;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    cr_assert(eq(int, plim_heap_allocate(0, 8 * (size_t)MIB, &a), GPU_OK));
    run_out(4 * MIB);
    cr_expect(eq(int, seen->pending, 1));
    cr_assert(eq(int, plim_heap_free(a), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, 4 * (size_t)MIB, &b), GPU_OK));
    cr_expect(eq(i64, seen->unmet, 0), "what was cached was given back");
    cr_expect(eq(int, seen->pending, 0));
    run_out(8 * MIB);
    run_out(8 * MIB);
    cr_expect(eq(i64, seen->unmet, 1), "refused twice");
    plim_self_launches();
    run_out(7 * MIB);
    plim_self_launches();
    cr_expect(eq(i64, seen->unmet, 2), "and went on without");
    cr_expect(eq(i64, seen->asked_bytes, 8 * MIB), "in whole pages");
    cr_expect(eq(i64, seen->free_bytes, 6 * MIB));
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
    plim_self_launches();
    cr_expect(eq(i64, seen->unmet, 1));
    cr_expect(eq(i64, seen->replanned, 1));
    run_out(20 * MIB);
    plim_self_launches();
    cr_expect(eq(i64, seen->unmet, 2));
    cr_expect(eq(i64, seen->replanned, 1), "something else came next");
}

/* As PyTorch's allocator says it, after a refusal or by a limit of its own. */
Test(out_of_memory, what_the_framework_gives_up_counts_once)
{
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    plim_self_request_failed(0, 20 * MIB, 10 * MIB); /* it is in no machine */
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    const struct plim_machine_refusal *seen = &plim_self_process()->refusal;
    run_out(20 * MIB);
    run_out(20 * MIB);
    plim_self_request_failed(0, 20 * MIB, 10 * MIB);
    cr_expect(eq(i64, seen->unmet, 1));
    cr_expect(eq(i64, seen->limited, 0), "the GPU did not have it");
    plim_self_launches();
    plim_self_request_failed(0, 4 * MIB, 10 * MIB);
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
    cr_assert(eq(int, plim_heap_allocate(0, 96 * (size_t)MIB, &at), GPU_OK));
    plim_self_launches();
    cr_expect(eq(i64, seen->unmet, 0));
    run_out(8 * MIB);
    cr_assert(eq(int, plim_heap_allocate(0, 4 * (size_t)MIB, &at), GPU_OK), "half of it is something else");
    plim_self_launches();
    cr_expect(eq(i64, seen->unmet, 1));
}

Test(pool, keeps_what_is_freed_up_to_its_threshold)
{
    uintptr_t at;
    uint64_t bytes;
    make_machine("A100-SXM4-80GB", 1, 200 * MIB);
    struct plim_memory_pool *pool = plim_pool_default(0);
    cr_assert(eq(int, plim_pool_allocate(pool, 40 * (size_t)MIB, &at), GPU_OK));
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
    cr_expect(eq(int, plim_pool_allocate(pool, 199 * (size_t)MIB, &at), GPU_OK), "by pages");
    cr_expect(eq(int, plim_pool_allocate(pool, 4 * (size_t)MIB, &at), GPU_OUT_OF_MEMORY));
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
    cr_assert(eq(int, plim_heap_allocate(0, (size_t)MIB, &memory), GPU_OK));
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
    cr_expect(lt(dbl, 1.5 * seconds[0], seconds[2]));
    for (int i = 0; i < 4; i++) plim_event_destroy(events[i]);
}

Test(graph, a_copy_costs_what_was_captured)
{
    const struct plim_cost product = {.kind = PLIM_COST_MATMUL, .number = {1, 2, 3, 4, 5, 6}};
    const struct plim_work work = {.what = "a product", .cost = &product};
    struct plim_graph *graph, *copy;
    size_t count;
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    struct plim_stream *stream = plim_stream_of(NULL);
    cr_assert(eq(int, plim_capture_begin(stream, NULL), GPU_OK));
    for (int i = 0; i < 2; i++) cr_assert(eq(int, plim_library_launch(&work), GPU_OK));
    cr_assert(eq(int, plim_capture_end(stream, &graph), GPU_OK));
    copy = plim_graph_clone(graph);
    plim_graph_destroy(graph);
    const struct plim_cost *costs = plim_graph_costs(copy, &count);
    cr_assert(eq(sz, count, 2));
    for (size_t i = 0; i < count; i++) {
        cr_expect(eq(int, costs[i].kind, PLIM_COST_MATMUL));
        cr_expect(eq(i64, costs[i].number[5], 6));
    }
    plim_graph_destroy(copy);
}

Test(graph, where_a_recording_is_made_it_is_said_that_it_lacks_pools)
{
    struct plim_graph *graph;
    char folder[] = "/tmp/plimsoll-graph-XXXXXX";
    cr_assert(mkdtemp(folder) != NULL);
    setenv("PLIMSOLL_RECORDING", folder, 1);
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_assert(eq(int, plim_capture_begin(plim_stream_of(NULL), NULL), GPU_OK));
    cr_assert(eq(int, plim_capture_end(plim_stream_of(NULL), &graph), GPU_OK));
    cr_expect(eq(u32, machine->note_count, 1));
    const char *said = machine->notes[0];
    cr_expect(strstr(said, "mode=\"reduce-overhead\" fails; exec runs it") != NULL, "%s", said);
    plim_graph_destroy(graph);
    rmdir(folder);
}

/* GPT-2's last layer, backward, and the same padded to a multiple of 8: what is lost is more than copies take. */
Test(event, a_product_of_rows_that_are_not_aligned_takes_longer)
{
    static const struct { enum plim_cost_type type; int64_t words; bool is_slow; } rows[] = {
        {PLIM_COST_BF16, 50257, true}, {PLIM_COST_BF16, 50264, false}, {PLIM_COST_FP32, 50257, false},
        {PLIM_COST_TF32, 50257, true}};
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t row_bytes = rows[i].words * (rows[i].type == PLIM_COST_BF16 ? 2 : 4);
        const struct plim_cost backward = {.kind = PLIM_COST_MATMUL, .type = (uint8_t)rows[i].type,
                                           .number = {8192, 768, rows[i].words, 1, row_bytes, 1536}};
        const struct plim_work work = {.what = "a product", .cost = &backward};
        struct plim_event *from, *to;
        double seconds;
        cr_assert(eq(int, plim_event_create(0, &from) || plim_event_create(0, &to), 0));
        cr_assert(eq(int, plim_event_record(from, plim_stream_of(NULL)), 0));
        cr_assert(eq(int, plim_library_launch(&work), 0));
        cr_assert(eq(int, plim_event_record(to, plim_stream_of(NULL)), 0));
        cr_assert(eq(int, plim_event_seconds(from, to, &seconds), 0));
        cr_expect(eq(int, seconds > 0.1, rows[i].is_slow), "%zu: %g", i, seconds);
        plim_event_destroy(from);
        plim_event_destroy(to);
    }
}

static const struct plim_cost last_layer = {.kind = PLIM_COST_MATMUL, .type = PLIM_COST_BF16,
                                            .number = {8192, 50257, 768, 1, 1536, 1536}};

/* Hopper's kernels want the result's rows aligned, too. */
Test(event, a_product_whose_result_is_not_aligned_takes_longer_on_hopper)
{
    make_machine("H100-SXM5-80GB", 1, 100 * MIB);
    cr_expect(lt(i64, 1000000000, plim_event_lost_nanoseconds(&last_layer)));
}

Test(event, a_product_whose_result_is_not_aligned_takes_no_longer_before)
{
    make_machine("A100-SXM4-80GB", 1, 100 * MIB);
    cr_expect(eq(i64, plim_event_lost_nanoseconds(&last_layer), 0));
}

/* Gradients of 50257 words for 8192 tokens, transposed, take longer to copy than their product loses by its rows; the
 * weights of the words, which are padded forward, do not. */
Test(event, a_transposed_copy_takes_longer)
{
    const struct plim_cost backward = {.kind = PLIM_COST_MATMUL, .type = PLIM_COST_BF16,
                                       .number = {50257, 768, 8192, 1, 100514, 1536}};
    enum { SECTOR = 32, WORDS = 50257 };
    make_machine("H100-SXM5-80GB", 1, 100 * MIB);
    cr_expect(lt(i64, plim_event_lost_nanoseconds(&backward),
                 plim_event_lost_by_jumping((int64_t)SECTOR * WORDS * 8192)));
    cr_expect(lt(i64, plim_event_lost_by_jumping((int64_t)SECTOR * WORDS * 768),
                 plim_event_lost_nanoseconds(&last_layer) / 2));
    cr_expect(eq(i64, plim_event_lost_by_jumping(0), 0));
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
