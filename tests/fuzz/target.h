/* A fuzz target: bytes go into one parser of outside input.
 *
 * The bar is the same for each: it ends, in bounded time and memory, without a finding of a
 * sanitizer; what it accepts keeps the promises that the target checks (abort() otherwise).
 * libFuzzer calls it under scripts/fuzz; in every build the corpus is run through it as a test
 * (run_corpus.c).
 */
#ifndef PLIM_TESTS_FUZZ_TARGET_H
#define PLIM_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A terminated copy; the caller's to free. A sanitizer sees reads behind it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Writes the bytes to a file of this name in a folder of this process, whose path is the result;
 * the folder goes at exit. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);

/* A promise that does not hold is a finding. */
static inline void fuzz_expect(int holds)
{
    if (!holds) abort();
}

#endif
