/* Reads the machine on plimsoll's side; the program under test may have written anything into it. */
#include "machine.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* 2^50 bytes (1 PiB) or allocations: more than any machine has, and sums over all rows do not overflow. */
static const int64_t MOST = INT64_C(1) << 50;
static const double MOST_SECONDS = 1e9;

static int64_t within(int64_t value)
{
    return value < 0 ? 0 : value > MOST ? MOST : value;
}

static double within_real(double value, double most)
{
    return isfinite(value) && value > 0 ? (value < most ? value : most) : 0;
}

/* Reads a bool as a byte, since a bool object may only hold 0 or 1 and the program may have stored any byte. */
static bool truth_of(const void *at)
{
    unsigned char byte;
    memcpy(&byte, at, 1);
    return byte != 0;
}

/* Copies once, so that the checked value is the one that is used. */
static void copy(void *out, const void *from, size_t size)
{
    memcpy(out, from, size);
    atomic_signal_fence(memory_order_seq_cst);
}

static void check_sizes(struct plim_machine_size *sizes)
{
    for (int i = 0; i < PLIM_MACHINE_SIZES; i++) {
        sizes[i].count = within(sizes[i].count);
        sizes[i].bytes = within(sizes[i].bytes);
    }
}

void plim_machine_read_process(const struct plim_machine *machine, int row,
                               struct plim_machine_process *out)
{
    const struct plim_machine_process *from = &machine->processes[row];
    struct plim_machine_refusal *refusal = &out->refusal;
    copy(&out->pid, &from->pid, sizeof(out->pid)); /* most rows are free */
    if (out->pid) copy(out, from, sizeof(*out));
    if (!out->pid) {
        memset(out, 0, sizeof(*out));
        return;
    }
    out->ended = truth_of(&out->ended);
    out->steady = truth_of((const void *)&out->steady);
    out->still = truth_of((const void *)&out->still);
    out->in_epoch = truth_of((const void *)&out->in_epoch);
    for (int i = 0; i < PLIM_MACHINE_GPUS; i++) {
        out->held_bytes[i] = within(out->held_bytes[i]);
        out->peak_bytes[i] = within(out->peak_bytes[i]);
        check_sizes(out->live[i]);
        check_sizes(out->at_peak[i]);
    }
    refusal->count = within(refusal->count);
    refusal->unmet = within(refusal->unmet);
    refusal->replanned = within(refusal->replanned);
    refusal->limited = within(refusal->limited);
    refusal->asked_bytes = within(refusal->asked_bytes);
    refusal->free_bytes = within(refusal->free_bytes);
    if (refusal->pending < 0) refusal->pending = 0;
    out->peak_all_bytes = within(out->peak_all_bytes);
    out->launches = within(out->launches);
    out->allocations = within(out->allocations);
    out->frees = within(out->frees);
    out->steps = within(out->steps);
    out->epochs = within(out->epochs);
    out->step_seconds = within_real(out->step_seconds, MOST_SECONDS);
    out->leak_bytes = within_real(out->leak_bytes, (double)MOST);
}

int64_t plim_machine_read_peak(const struct plim_machine *machine, int gpu, int *contexts)
{
    struct plim_machine_gpu from;
    copy(&from, &machine->gpus[gpu], sizeof(from));
    bool is_count = from.peak_contexts > 0 && from.peak_contexts <= PLIM_MACHINE_PROCESSES;
    *contexts = is_count ? from.peak_contexts : 0;
    int64_t peak = within(from.peak_bytes), beside = peak - (is_count ? within(from.context_bytes) : 0);
    return beside > 0 ? beside : 0;
}

uint32_t plim_machine_read_notes(const struct plim_machine *machine,
                                 char (*out)[PLIM_MACHINE_NOTE_BYTES], uint32_t most)
{
    uint32_t count;
    copy(&count, &machine->note_count, sizeof(count));
    if (count > most) count = most;
    for (uint32_t i = 0; i < count; i++) {
        copy(out[i], machine->notes[i], PLIM_MACHINE_NOTE_BYTES);
        out[i][PLIM_MACHINE_NOTE_BYTES - 1] = '\0';
    }
    return count;
}

void plim_machine_read_questions(const struct plim_machine *machine,
                                 struct plim_machine_questions *out)
{
    copy(out, &machine->questions, sizeof(*out));
    if (out->count > PLIM_MACHINE_QUESTIONS) out->count = PLIM_MACHINE_QUESTIONS;
    out->unlisted = within(out->unlisted);
    for (uint32_t i = 0; i < out->count; i++) {
        struct plim_machine_question *row = &out->rows[i];
        row->kernel[PLIM_QUESTION_TEXT - 1] = row->place[PLIM_QUESTION_TEXT - 1] = '\0';
        row->count = within(row->count);
        row->bytes = within(row->bytes);
        row->turned = within(row->turned);
        if (row->use < PLIM_QUESTION_SHOWN || row->use > PLIM_QUESTION_DECIDES)
            row->use = PLIM_QUESTION_DECIDES;
    }
}
