/* Where a thread is, asked for every so many nanoseconds of its CPU time: for profile_kernel.py. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define ROOM (1 << 20)
static unsigned long places[ROOM];
static volatile int count;
static timer_t timer;

static void note(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    const mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#if defined(__x86_64__)
    unsigned long place = machine->gregs[REG_RIP];
#elif defined(__aarch64__)
    unsigned long place = machine->pc;
#else
#error "the sampler knows x86-64 and ARM64"
#endif
    if (count < ROOM) places[count++] = place;
}

int start(long nanoseconds) {
    struct sigaction action;
    struct sigevent event;
    struct itimerspec every;
    memset(&action, 0, sizeof action);
    memset(&event, 0, sizeof event);
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = syscall(SYS_gettid);
    event.sigev_signo = SIGPROF;
    every.it_interval.tv_sec = 0;
    every.it_interval.tv_nsec = nanoseconds;
    every.it_value = every.it_interval;
    count = 0;
    if (sigaction(SIGPROF, &action, 0) || timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer)) return -1;
    if (timer_settime(timer, 0, &every, 0) == 0) return 0;
    timer_delete(timer);
    return -1;
}

int stop(void) {
    timer_delete(timer);
    return count;
}

unsigned long *noted(void) { return places; }
