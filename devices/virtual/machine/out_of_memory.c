#include "out_of_memory.h"

static _Thread_local struct {
    int64_t pending_bytes; /* size of the refused request; 0: none */
    bool counted;          /* already counted as unmet */
} thread;

static void set_pending(struct plim_machine_refusal *refusal, int64_t bytes)
{
    refusal->pending += (bytes != 0) - (thread.pending_bytes != 0);
    thread.pending_bytes = bytes;
}

static void count_unmet(struct plim_machine_refusal *refusal)
{
    if (thread.counted) return;
    refusal->unmet++;
    thread.counted = true;
}

void plim_out_of_memory_refused(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                                int64_t free_bytes)
{
    if (thread.pending_bytes == asked_bytes) count_unmet(refusal);
    else thread.counted = false;
    set_pending(refusal, asked_bytes);
    refusal->count++;
    refusal->asked_bytes = asked_bytes;
    refusal->free_bytes = free_bytes;
    refusal->gpu = gpu;
}

void plim_out_of_memory_met(struct plim_machine_refusal *refusal, int64_t bytes)
{
    int64_t enough = thread.pending_bytes - thread.pending_bytes / 8;
    if (thread.pending_bytes && bytes >= enough) set_pending(refusal, 0);
}

void plim_out_of_memory_launches(struct plim_machine_refusal *refusal)
{
    if (!thread.pending_bytes) return;
    count_unmet(refusal);
    set_pending(refusal, 0);
}

void plim_out_of_memory_plans(struct plim_machine_refusal *refusal)
{
    refusal->replanned += thread.pending_bytes != 0;
    plim_out_of_memory_launches(refusal);
}

void plim_out_of_memory_failed(struct plim_machine_refusal *refusal, int gpu, int64_t asked_bytes,
                               int64_t free_bytes)
{
    if (!thread.pending_bytes) {
        plim_out_of_memory_refused(refusal, gpu, asked_bytes, free_bytes);
        refusal->limited++;
    }
    count_unmet(refusal);
}
