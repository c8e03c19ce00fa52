#include "question.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/work/signature.h"
#include "loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*plim_question_find_asker)(size_t, bool, struct plim_question_asker *);

/* Writes the name of a kernel without its return type and without template and function arguments. */
static void name_kernel(const char *mangled, char out[PLIM_QUESTION_TEXT])
{
    char *text = mangled ? plim_signature_text(mangled) : NULL;
    const char *name = text ? text : mangled ? mangled : "";
    if (!strncmp(name, "void ", 5)) name += 5;
    const char *hidden = "(anonymous namespace)", *end = name + strcspn(name, "<(");
    if (!strncmp(end, hidden, strlen(hidden))) end += strlen(hidden), end += strcspn(end, "<(");
    snprintf(out, PLIM_QUESTION_TEXT, "%.*s", (int)(end - name), name);
    free(text);
}

static bool has_any(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, words[i])) return true;
    return false;
}

/* True if the types in the kernel's name include a floating-point type and none of the others it might write: indices,
 * counts, truth values (an optimizer kernel takes bools only by value). */
static bool writes_floats(const char *mangled)
{
    static const char *const floats[] = {"float", "double", "c10::Half", "c10::BFloat16"};
    static const char *const others[] = {"long", "ompare", "bool"};
    char *text = mangled ? plim_signature_text(mangled) : NULL;
    size_t excluded = sizeof(others) / sizeof(others[0]);
    if (text && strstr(text, "multi_tensor_apply_kernel<")) excluded--;
    bool is_so = text && has_any(text, floats, sizeof(floats) / sizeof(floats[0])) &&
                 !has_any(text, others, excluded);
    free(text);
    return is_so;
}

/* Stores a given value as a number of `bytes` bytes; `is_floating` if it is known to be floating-point. Returns false
 * if a number of this size cannot hold it. */
static bool store_given(void *to, size_t bytes, bool is_floating, const struct plim_given_value *given)
{
    int64_t whole = (int64_t)given->number;
    float single = (float)given->number;
    if (given->is_whole && !is_floating && bytes <= sizeof(whole))
        memcpy(to, &whole, bytes);
    else if (bytes == sizeof(single)) memcpy(to, &single, bytes);
    else if (bytes == sizeof(given->number)) memcpy(to, &given->number, bytes);
    else return false;
    return true;
}

/* The last place that read a result of `kernel`, and the value that the user gave for it; NULL: none. */
static struct {
    const char *kernel;
    char place[PLIM_QUESTION_TEXT];
    const struct plim_given_value *value;
} last;

/* Returns the value that the user gave, or NULL. The backward pass repeats reads of the forward pass in a thread that
 * Python does not know: it gets the same value as the last place that read this kernel's result, and counts as that
 * place. */
static const struct plim_given_value *find_given(struct plim_machine *machine, const char *kernel,
                                                 struct plim_question_asker *asker)
{
    static int64_t reads[PLIM_MACHINE_GIVEN];
    const struct plim_given_value *value = NULL;
    plim_self_lock();
    if (asker->place[0]) {
        const struct plim_machine_given *given = plim_machine_find_given(machine, asker->place);
        if (given) value = plim_machine_given_value(given, reads[given - machine->given]++);
        last.kernel = kernel;
        last.value = value;
        memcpy(last.place, asker->place, sizeof(last.place));
    } else if (kernel && kernel == last.kernel) {
        value = last.value;
        memcpy(asker->place, last.place, sizeof(last.place));
    }
    plim_self_unlock();
    return value;
}

/* Changes 0 to 1. Returns false if the value is not 0 or is too large. A float of two bytes is set to bfloat16's 1,
 * which is not 0 in fp16 either. */
static bool make_one(void *to, size_t bytes, bool is_floating)
{
    static const struct plim_given_value one = {.is_whole = true, .number = 1};
    static const unsigned char nothing[sizeof(int64_t)], half[2] = {0x80, 0x3f};
    if (bytes > sizeof(nothing) || memcmp(to, nothing, bytes)) return false;
    if (!is_floating || bytes != sizeof(half)) return store_given(to, bytes, is_floating, &one);
    memcpy(to, half, sizeof(half));
    return true;
}

static uint32_t answer(struct plim_machine *machine, void *to, size_t bytes, bool is_floating,
                       const char *kernel, struct plim_question_asker *asker,
                       struct plim_machine_question *question)
{
    const struct plim_given_value *given = find_given(machine, kernel, asker);
    if (given && store_given(to, bytes, is_floating, given)) {
        asker->use = PLIM_QUESTION_GIVEN;
        return 0;
    }
    if (asker->use == PLIM_QUESTION_CHECKED) {
        if (asker->answer >= 0 && bytes) *(unsigned char *)to = (unsigned char)asker->answer;
        return asker->assumes;
    }
    if (asker->answer > 0 && make_one(to, bytes, is_floating)) question->divides = question->answer = 1;
    return 0;
}

static bool goes_round(const char *place, int64_t most)
{
    const struct plim_machine_process *process = plim_self_process();
    plim_self_lock();
    bool turns = plim_loops_should_end(place, process ? process->steps : 0, most);
    plim_self_unlock();
    return turns;
}

/* If the program seems to loop, changes 0 to true, or to a number larger than it waits for. Integers of more than one
 * byte are left alone. */
static bool end_loop(void *to, size_t bytes, bool is_floating, const char *place)
{
    const struct plim_given_value much = {.is_whole = bytes == 1, .number = bytes == 1 ? 1 : 1e9};
    if (bytes != 1 && !is_floating) return false;
    return goes_round(place, PLIM_LOOP_READS) && store_given(to, bytes, is_floating, &much);
}

/* Same for a loop that runs while a mask selects something: now it selects nothing. */
static bool end_mask_loop(void *to, size_t bytes, const char *place)
{
    if (!goes_round(place, PLIM_LOOP_READS_OF_MASK)) return false;
    memset(to, 0, bytes);
    return true;
}

/* True if the kernel sums a mask or tests whether it selects anything; no size needs to depend on the result. */
static bool is_sum(const char *kernel)
{
    return kernel && strstr(kernel, "reduce_kernel");
}

/* Handles the number of elements that a mask selects: it is a size, so it counts as a decision whatever its use looks
 * like. A number given by the user is also stored on the GPU, so that the selected elements fit the memory allocated
 * for them. */
static void settle_count(uintptr_t from, const void *to, const char *kernel, struct plim_machine_question *question)
{
    unsigned char known[sizeof(question->answer)];
    if ((size_t)question->bytes > sizeof(known)) return;
    memset(known, PLIM_KNOWN | PLIM_ASSUMPTION_ALL, sizeof(known));
    if (question->use == PLIM_QUESTION_KEPT && !is_sum(kernel)) question->use = PLIM_QUESTION_DECIDES;
    if (question->use == PLIM_QUESTION_GIVEN)
        plim_shadow_store(from, to, known, (size_t)question->bytes, kernel);
    else
        memcpy(&question->answer, to, (size_t)question->bytes);
}

/* Removes assumptions on which nothing rests. The indices of the largest values (a metric's top five) or a token matter
 * only if the program decides by them; so does a number of selected elements that is merely shown, or a sum that is
 * stored, such as a count of correct answers, which then counts as unknown. */
static unsigned without_idle(unsigned known, const char *kernel, const struct plim_question_asker *asker)
{
    bool is_idle = asker->place[0] && asker->use <= PLIM_QUESTION_KEPT;
    unsigned idle = is_idle ? PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_LONGEST : 0;
    bool is_idle_sum = is_idle && known & PLIM_ASSUMPTION_ALL && is_sum(kernel);
    if (is_idle_sum || (is_idle && asker->use == PLIM_QUESTION_SHOWN)) idle |= PLIM_ASSUMPTION_ALL;
    return (known & ~idle) | (is_idle_sum ? PLIM_SOME_UNKNOWN : 0);
}

void plim_question_asked(uintptr_t from, void *to, size_t bytes, unsigned known)
{
    enum { MOST_SHOWN = 1 << 20 }; /* larger values are not printed: offloaded activations, copied by C++ code */
    struct plim_machine *machine = plim_self_machine();
    struct plim_machine_question question = {.bytes = (int64_t)bytes};
    struct plim_question_asker asker = {.use = PLIM_QUESTION_KEPT, .answer = -1};
    const unsigned chosen = PLIM_ASSUMPTION_ALL | PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_LONGEST;
    if (!machine) return;
    bool is_asked = known & (PLIM_SOME_UNKNOWN | chosen);
    const char *kernel = is_asked ? plim_shadow_writer(from, bytes) : NULL;
    bool is_floating = writes_floats(kernel);
    if (plim_question_find_asker && is_asked) plim_question_find_asker(bytes, is_floating, &asker);
    if (asker.use == PLIM_QUESTION_SHOWN && bytes > MOST_SHOWN) asker.use = PLIM_QUESTION_KEPT;
    known = without_idle(known, kernel, &asker);
    if (known & PLIM_ASSUMED) plim_machine_assume(machine, known & PLIM_ASSUMED);
    if (!(known & (PLIM_SOME_UNKNOWN | PLIM_ASSUMPTION_ALL))) return;
    bool is_forward = asker.place[0] != '\0';
    uint32_t assumed = answer(machine, to, bytes, is_floating, kernel, &asker, &question);
    if (assumed) plim_machine_assume(machine, assumed);
    name_kernel(kernel, question.kernel);
    memcpy(question.place, asker.place, sizeof(question.place));
    question.use = asker.use;
    if (known & PLIM_ASSUMPTION_ALL && !is_floating) settle_count(from, to, kernel, &question);
    if (question.use == PLIM_QUESTION_DECIDES && is_forward)
        question.turned = question.answer && !question.divides ? end_mask_loop(to, bytes, question.place)
                                          : end_loop(to, bytes, is_floating, question.place);
    plim_machine_add_question(machine, &question);
}
