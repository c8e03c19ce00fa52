/* Results of NVIDIA's libraries for a shape, kept for the next process: cuBLASLt's choice of an algorithm, cuDNN's
 * compiled plan (0.07 to 1.4 s each).
 *
 * A memo is a file in memory (memfd_create) that is passed to all workers of a run, one after another. It is appended
 * to, and read again for every query: queries are rare, because each process first looks in a table of its own. The key
 * is everything that a result depends on: kind, version of the library, GPU, driver, and the shape as bytes.
 *
 * Nothing in the file is trusted. An entry that is incomplete (its writer was killed), has a wrong checksum, or was in
 * use when a process ended is ignored, and the library is queried again. The file does not outlive the run.
 *
 * Thread safety: one process at a time, and one thread in it. */
#ifndef PLIM_DEVICES_CUDA_MEMO_H
#define PLIM_DEVICES_CUDA_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_memo {
    int fd;        /* lent; -1: nothing is kept */
    char gpu[112]; /* the GPU and its driver, for which the results are valid; padded with zeros */
};

struct plim_memo_question {
    const char *kind; /* "gemm", "attention": at most 15 bytes */
    int64_t version;  /* of the library */
    const void *shape;
    size_t shape_bytes;
};

struct plim_memo_answer {
    void *bytes;
    size_t size;
    int64_t at; /* in the file */
};

/* Finds the last answer that was kept. Returns false if there is none. It is marked as in use until it is released: if
 * a process crashes on it, it stays marked, and the next process ignores it. */
bool plim_memo_find(const struct plim_memo *memo, const struct plim_memo_question *question,
                    struct plim_memo_answer *out);
void plim_memo_release(const struct plim_memo *memo, struct plim_memo_answer *answer);

/* Keeps an answer; if that fails (no room) the next process queries the library. With a NULL memo nothing is kept or
 * found. */
void plim_memo_store(const struct plim_memo *memo, const struct plim_memo_question *question,
                     const void *bytes, size_t size);

#endif
