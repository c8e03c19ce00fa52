#include "ahead.h"
#include <pthread.h>
#include <stdlib.h>

struct job {
    struct plim_setting setting;
    enum { WAITS, RUNS, DONE, TAKEN } state;
    struct plim_replay replay;
};

struct plim_ahead {
    plim_ahead_run *run;
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t count;
    struct job jobs[];
};

/* Returns the last waiting job, or NULL. */
static struct job *next_job(struct plim_ahead *a)
{
    for (size_t i = a->count; i-- > 0;)
        if (a->jobs[i].state == WAITS) return &a->jobs[i];
    return NULL;
}

static void *work(void *user)
{
    struct plim_ahead *a = user;
    pthread_mutex_lock(&a->lock);
    for (struct job *job; (job = next_job(a));) {
        job->state = RUNS;
        pthread_mutex_unlock(&a->lock);
        bool done = a->run(a->user, &job->setting, &job->replay);
        pthread_mutex_lock(&a->lock);
        job->state = done ? DONE : TAKEN; /* on failure the caller runs it and gets the error */
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

struct plim_ahead *plim_ahead_start(plim_ahead_run *run, void *user,
                                    const struct plim_setting *settings, size_t count)
{
    struct plim_ahead *a = calloc(1, sizeof(*a) + count * sizeof(a->jobs[0]));
    if (!a) return NULL;
    a->run = run;
    a->user = user;
    a->count = count;
    for (size_t i = 0; i < count; i++) a->jobs[i].setting = settings[i];
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (!pthread_create(&a->thread, NULL, work, a)) return a;
    a->count = 0; /* there is no thread to wait for */
    plim_ahead_finish(&a);
    return NULL;
}

bool plim_ahead_result(struct plim_ahead *a, const struct plim_setting *setting,
                       struct plim_replay *out)
{
    bool done = false;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->count; i++) {
        struct job *job = &a->jobs[i];
        if (job->state == TAKEN || !plim_setting_equal(&job->setting, setting)) continue;
        while (job->state == RUNS) pthread_cond_wait(&a->changed, &a->lock);
        done = job->state == DONE;
        if (done) *out = job->replay;
        else job->state = TAKEN;
        break;
    }
    pthread_mutex_unlock(&a->lock);
    return done;
}

void plim_ahead_finish(struct plim_ahead **place)
{
    struct plim_ahead *a = *place;
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->count; i++)
        if (a->jobs[i].state == WAITS) a->jobs[i].state = TAKEN;
    pthread_mutex_unlock(&a->lock);
    if (a->count) pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
    *place = NULL;
}
