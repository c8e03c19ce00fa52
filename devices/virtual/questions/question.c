#include "question.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/memory/shadow.h"
#include "devices/virtual/work/signature.h"
#include "loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*plim_question_find_asker)(size_t, bool, struct plim_question_asker *);

/* Without the return type, and what stands in brackets behind the name. */
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

/* A kernel whose name has types of floating-point numbers in it, and none of what else it might
 * write: places, counts, truth (which an optimizer's kernel is given by value). */
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

/* A number of so many bytes, of which it is known whether they are a floating-point number's, or not; false: it cannot
 * be told what that would look like. */
static bool give(void *to, size_t bytes, bool is_floating, const struct plim_given_value *given)
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

/* Who read last what a kernel writes, and what the user gave there; NULL: nothing. */
static struct {
    const char *kernel;
    char place[PLIM_QUESTION_TEXT];
    const struct plim_given_value *value;
} last;

/* The value that the user gives. Backward asks again what forward did, in a thread of which Python knows nothing: it is
 * told the same as whoever read last what that kernel writes, and asks in his place. */
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

/* What is 0 becomes 1; false: it is not 0, or cannot be. Of two bytes it is that of bfloat16, no 0 in fp16 either. */
static bool make_one(void *to, size_t bytes, bool is_floating)
{
    static const struct plim_given_value one = {.is_whole = true, .number = 1};
    static const unsigned char nothing[sizeof(int64_t)], half[2] = {0x80, 0x3f};
    if (bytes > sizeof(nothing) || memcmp(to, nothing, bytes)) return false;
    if (!is_floating || bytes != sizeof(half)) return give(to, bytes, is_floating, &one);
    memcpy(to, half, sizeof(half));
    return true;
}

static uint32_t answer(struct plim_machine *machine, void *to, size_t bytes, bool is_floating,
                       const char *kernel, struct plim_question_asker *asker,
                       struct plim_machine_question *question)
{
    const struct plim_given_value *given = find_given(machine, kernel, asker);
    if (given && give(to, bytes, is_floating, given)) {
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
    bool turns = plim_loops_turn(place, process ? process->steps : 0, most);
    plim_self_unlock();
    return turns;
}

/* Where the program seems to go round and round, what was 0 is something else this time: true, or more than it waits
 * for. Of what is neither a truth value nor a floating-point number nothing is known. */
static bool turn(void *to, size_t bytes, bool is_floating, const char *place)
{
    const struct plim_given_value much = {.is_whole = bytes == 1, .number = bytes == 1 ? 1 : 1e9};
    if (bytes != 1 && !is_floating) return false;
    return goes_round(place, PLIM_LOOP_READS) && give(to, bytes, is_floating, &much);
}

/* The same where it goes on as long as a mask selects any: now it selects none. */
static bool turn_off(void *to, size_t bytes, const char *place)
{
    if (!goes_round(place, PLIM_LOOP_READS_OF_MASK)) return false;
    memset(to, 0, bytes);
    return true;
}

/* A mask's sum, or whether it selects any, which no size has to follow. */
static bool is_sum(const char *kernel)
{
    return kernel && strstr(kernel, "reduce_kernel");
}

/* How many a mask selects is a size, and decides, whatever it looks like. What the user says it is stands on the GPU
 * too: what is selected then goes where room for as many was made. */
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

/* Which of the learned numbers are the largest, as for a metric's best five, or which token is, is nothing that an
 * answer rests on unless the program decides by it; nor is how many a mask selects that are only shown, or a sum that
 * is put away, as right answers are counted: that is just not known. */
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
    enum { MOST_SHOWN = 1 << 20 }; /* nobody prints more: activations that are offloaded, by C++ */
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
        question.turned = question.answer && !question.divides ? turn_off(to, bytes, question.place)
                                          : turn(to, bytes, is_floating, question.place);
    plim_machine_ask(machine, &question);
}
