/* record of programs that torch.compile makes kernels of, with the trainer of the tests of exec. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char *new_path(void)
{
    char *path = program_file("job.plim", "");
    unlink(path);
    return path;
}

static struct program explain(const char *path, int batch)
{
    char line[1024];
    snprintf(line, sizeof(line),
             "explain %s --batch %d --device sim:A100-SXM4-80GB,memory=1GiB --margin 0 --overhead 0 --json",
             path, batch);
    return program_run(line);
}

/* What torch.compile made in one run, and what Triton tuned, would be there for the next, which then takes another
 * amount of memory. Code that Triton compiled is there, but for the first run. With its own allocator (`L`: it is one)
 * the program runs twice, as a first launch and as a later one, which has `more` MiB of states. */
static struct program record_compiled(const char *path, const char *batches, int more, const char *options)
{
    char line[2048];
    unsetenv("TORCHINDUCTOR_CACHE_DIR");
    unsetenv("TRITON_CACHE_DIR");
    snprintf(line, sizeof(line),
             "record %s -o %s -- sh -c "
             "I=$TORCHINDUCTOR_CACHE_DIR/made;T=$TRITON_CACHE_DIR/k;S=100;L=$PYTORCH_NO_CUDA_MEMORY_CACHING;"
             "mkdir~-p~$TORCHINDUCTOR_CACHE_DIR~$T&&{~mkdir~$I~||~{~test~-z~$L&&S=%d;~};~}&&touch~$I/kernel&&"
             "{~test~!~-e~$T/f.autotune.json||test~$S~!=~100||test~$S~=~%d;~}&&touch~$T/f.autotune.json&&"
             "{~test~{batch}~=~1~||~test~-e~$T/f.cubin;~}&&touch~$T/f.cubin&&"
             "exec~'%s'~{batch}~cache=0~states=$S~steps=30%s",
             batches, path, 100 + more, 100 + more, PLIM_TRAINER, options);
    return program_run(line);
}

Test(record_compiled, each_run_compiles_and_tunes_for_itself)
{
    for (int more = 0; more <= 50; more += 50) {
        char *path = new_path();
        struct program p = record_compiled(path, "", more, "");
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        const char *doubt = strstr(p.err, "uncertain: at batch 3 the first launch, which compiles kernels "
                                          "(torch.compile) and is recorded, reserves 260 MiB, and a later one, which "
                                          "finds them, 310");
        cr_expect(eq(int, doubt != NULL, more > 0), "%s", p.err);
        program_finish(&p);
        p = explain(path, 7);
        cr_expect(strstr(p.out, "torch.compile made its kernels, and makes others") != NULL, "%s", p.out);
        program_finish(&p);
        program_file_remove(path);
    }
}

/* Its runs are kept, and the batches between are not known. */
Test(record_compiled, each_batch_is_recorded_alone_where_they_differ)
{
    char *path = new_path();
    struct program p = record_compiled(path, "--batch 1,2,5", 0, "~alone=1");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    const char *said = strstr(p.err, "torch.compile generates other kernels at other sizes), so each batch is recorded "
                                     "on its own");
    cr_expect(said != NULL, "%s", p.err);
    const char *once = strstr(p.err, "batch 5: ");
    cr_expect(once && !strstr(once + 1, "batch 5: "), "%s", p.err);
    program_finish(&p);
    p = explain(path, 5);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), (64 + 100 + 5 * 32) * MIB));
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}
