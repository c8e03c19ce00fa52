/* Finds the asker in Python programs: asks the interpreter, through functions that it exports, what the calling thread
 * is executing (use_of_value.py). Only threads known to Python are examined. The GIL is acquired for it, as PyTorch
 * releases it while it waits for the GPU. */
#include "autotune/base/embed.h"
#include "devices/virtual/process/dlsym.h"
#include "devices/virtual/work/transfer.h"
#include "question.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

extern const struct plim_embedded_file plim_questions_python[];

/* Py_file_input of Python's compile.h: source text of a module. */
enum { FILE_INPUT = 257 };

/* The functions of Python's C API that are used, available from 3.8 to 3.14. PyObject is declared as void here. */
static struct {
    int (*Py_IsInitialized)(void);
    void *(*PyGILState_GetThisThreadState)(void);
    int (*PyGILState_Ensure)(void);
    void (*PyGILState_Release)(int);
    void *(*PyEval_GetFrame)(void);
    void *(*PyDict_New)(void);
    void *(*PyDict_GetItemString)(void *, const char *);
    void *(*PyRun_String)(const char *, int, void *, void *);
    void *(*PyObject_CallFunction)(void *, const char *, ...);
    int (*PyArg_ParseTuple)(void *, const char *, ...);
    void (*PyErr_Fetch)(void **, void **, void **);
    void (*PyErr_Restore)(void *, void *, void *);
    void (*Py_DecRef)(void *);
} python;

static void *names; /* namespace of the module; created once, under the GIL, and kept */

static bool find_all(void)
{
    static const char *const symbols[] = {
        "Py_IsInitialized", "PyGILState_GetThisThreadState", "PyGILState_Ensure",
        "PyGILState_Release", "PyEval_GetFrame", "PyDict_New", "PyDict_GetItemString",
        "PyRun_String", "PyObject_CallFunction", "PyArg_ParseTuple", "PyErr_Fetch",
        "PyErr_Restore", "Py_DecRef"};
    _Static_assert(sizeof(python) == sizeof(symbols), "a function for each name");
    void *found[sizeof(symbols) / sizeof(symbols[0])];
    plim_dlsym_prepare();
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        found[i] = plim_dlsym_real(RTLD_DEFAULT, symbols[i]);
        if (!found[i]) return false;
    }
    memcpy(&python, found, sizeof(python));
    return true;
}

static void *prepare(void)
{
    if (!names && (names = python.PyDict_New())) {
        void *made = python.PyRun_String(plim_questions_python[0].text, FILE_INPUT, names, names);
        if (made) python.Py_DecRef(made);
    }
    return names ? python.PyDict_GetItemString(names, "use_of") : NULL;
}

static void ask(void *frame, size_t bytes, bool is_floating, struct plim_question_asker *asker)
{
    static const struct {
        enum plim_question_use use;
        enum plim_assumption assumes;
    } uses[] = {{PLIM_QUESTION_SHOWN, 0},
                {PLIM_QUESTION_KEPT, 0},
                {PLIM_QUESTION_CHECKED, PLIM_ASSUMPTION_FINITE},
                {PLIM_QUESTION_CHECKED, PLIM_ASSUMPTION_BELOW},
                {PLIM_QUESTION_CHECKED, PLIM_ASSUMPTION_CHECKS},
                {PLIM_QUESTION_DECIDES, 0}};
    const char *file;
    int line, use, answer;
    void *function = prepare();
    void *result = function ? python.PyObject_CallFunction(function, "Oni", frame, (ptrdiff_t)bytes,
                                                           (int)is_floating)
                          : NULL;
    if (result && python.PyArg_ParseTuple(result, "siii", &file, &line, &use, &answer) && use >= 0 &&
        use < (int)(sizeof(uses) / sizeof(uses[0]))) {
        snprintf(asker->place, sizeof(asker->place), "%.*s:%d", PLIM_QUESTION_TEXT - 16, file, line);
        asker->use = uses[use].use;
        asker->assumes = uses[use].assumes;
        asker->answer = answer;
    }
    if (result) python.Py_DecRef(result);
}

static void find_asker(size_t bytes, bool is_floating, struct plim_question_asker *asker)
{
    static _Thread_local bool is_asking;
    void *type, *value, *trace;
    if (is_asking || (!python.Py_DecRef && !find_all())) return;
    if (!python.Py_IsInitialized() || !python.PyGILState_GetThisThreadState()) return;
    is_asking = true;
    int state = python.PyGILState_Ensure();
    python.PyErr_Fetch(&type, &value, &trace);
    void *frame = python.PyEval_GetFrame();
    if (frame) ask(frame, bytes, is_floating, asker);
    python.PyErr_Restore(type, value, trace); /* also discards any error raised here */
    python.PyGILState_Release(state);
    is_asking = false;
}

__attribute__((constructor)) static void begin(void)
{
    plim_question_find_asker = find_asker;
    plim_transfer_asked = plim_question_asked;
}
