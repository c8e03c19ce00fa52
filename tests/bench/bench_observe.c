/* Nanoseconds that the observer adds to a launch: launches in the rhythm of training steps, on a driver
 * that does nothing, with and without it. One line of JSON.
 *
 * bench_observe LIBRARY FOLDER: the observer, and where the driver (null_driver.c) is. */
#include "autotune/base/clock.h"
#include "autotune/base/stats.h"
#include "devices/catalogue/catalogue.h"
#include "devices/virtual/machine/machine.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 24, OPERATIONS = 20, STEPS = 300, ROUNDS = 11 };
/* What eager PyTorch needs for a launch at least: its own dispatch and the driver, on a fast host. */
static const double LAUNCH_NS = 5000;

typedef int launch_kernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
typedef int get_function(void **, void *, const char *);

static void *find(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = driver ? dlsym(driver, name) : NULL;
    if (!found) exit(1);
    return found;
}

/* Forward, backward, one list of the optimizer a layer. Returns the launches. */
static int step(launch_kernel *launch, void *const *kernels, void *update)
{
    int count = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int layer = 0; layer < LAYERS; layer++)
            for (int i = 0; i < OPERATIONS; i++, count++)
                launch(kernels[pass * OPERATIONS + i], (unsigned)i + 1, (unsigned)pass + 1, 1, 128,
                       1, 1, 0, NULL, NULL, NULL);
    for (int layer = 0; layer < LAYERS; layer++, count++)
        launch(update, (unsigned)layer + 1, 1, 1, 512, 1, 1, 0, NULL, NULL, NULL);
    return count;
}

static int be_program(void)
{
    static char names[3 * OPERATIONS][64];
    void *kernels[3 * OPERATIONS], *update, *found = find("cuModuleGetFunction");
    double ns[ROUNDS];
    struct plim_stats stats;
    get_function *get;
    launch_kernel *launch;
    memcpy(&get, &found, sizeof(get));
    found = find("cuLaunchKernel");
    memcpy(&launch, &found, sizeof(launch));
    for (int i = 0; i < 3 * OPERATIONS; i++) {
        snprintf(names[i], sizeof(names[i]), "_Z%02dsome_elementwise_kernel_%02dPfPKf", 27, i);
        get(&kernels[i], NULL, names[i]);
    }
    get(&update, NULL, "multi_tensor_apply_kernel_FusedAdamMathFunctor");
    for (int round = 0; round < ROUNDS; round++) {
        int count = 0;
        double start = plim_clock_seconds();
        for (int i = 0; i < STEPS; i++) count += step(launch, kernels, update);
        ns[round] = 1e9 * (plim_clock_seconds() - start) / count;
    }
    plim_stats_compute(ns, ROUNDS, &stats);
    printf("%f\n", stats.median);
    return 0;
}

/* This program again, as the one that launches; its number. */
static double run(const char *self, const char *folder, const char *preloaded)
{
    char line[64] = "";
    int out[2];
    if (pipe(out)) return -1;
    pid_t pid = fork();
    if (!pid) {
        setenv("LD_LIBRARY_PATH", folder, 1);
        if (preloaded) setenv("LD_PRELOAD", preloaded, 1);
        dup2(out[1], STDOUT_FILENO);
        execl(self, self, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    ssize_t got = read(out[0], line, sizeof(line) - 1);
    close(out[0]);
    waitpid(pid, NULL, 0);
    return got > 0 ? strtod(line, NULL) : -1;
}

int main(int count, char **arguments)
{
    struct plim_machine_gpu gpu;
    const struct plim_gpu *model;
    char path[64];
    int fd;
    if (count < 3) return be_program();
    if (plim_catalogue_find("A100-SXM4-80GB", &model, NULL)) return 1;
    plim_machine_gpu_fill(&gpu, model, 0);
    struct plim_machine *machine = plim_machine_create(&gpu, 1, &fd, path);
    if (!machine) return 1;
    setenv(PLIM_MACHINE_VARIABLE, path, 1);
    double plain = run("/proc/self/exe", arguments[2], NULL);
    double observed = run("/proc/self/exe", arguments[2], arguments[1]);
    int64_t steps = machine->processes[0].steps, launches = machine->processes[0].launches;
    printf(
        "{\"bench\": \"observe\", \"launch_ns\": %.1f, \"observed_ns\": %.1f, \"added_ns\": %.1f, "
        "\"share_of_a_launch\": %.4f, \"launches\": %lld, \"steps\": %lld}\n",
        plain, observed, observed - plain, (observed - plain) / LAUNCH_NS, (long long)launches,
        (long long)steps);
    plim_machine_destroy(machine, fd);
    return plain > 0 && observed > 0 && launches > 0 && steps > 0 ? 0 : 1;
}
