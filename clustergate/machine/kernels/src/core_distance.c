/* How far two cores are from each other: a cache line is handed to and fro between them.
 *
 *   cc -O2 -pthread -o core_distance core_distance.c
 *   ./core_distance [--cores A,B] [--trials N] [--from-first 1]
 *
 * By default the first and the last core that this process may use, one hardware thread each. One
 * JSON line with the best and the mean round trip of N trials of 500 (default 60, some 5 ms). It
 * is measured before and after a launch: on a virtual machine the hypervisor moves cores to other
 * places, and messages between them then take several times as long with nothing else to show it.
 * With --from-first 1 there is a line for the first core and each of the others: no message is
 * faster than the cache line that goes to the nearest of them.
 *
 * A node with a single core has no distance: the line then has no "round_trip_ns".
 */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "pinned.h"

enum { ROUND_TRIPS = 500 };

/* Alone in its line, whatever lies before and behind: two lines are fetched at once by some. */
static struct {
    char before[256];
    atomic_long turn;
    char behind[256];
} line;

static void pin(int cpu)
{
    static _Thread_local unsigned long words[MAX_CPUS / (CHAR_BIT * sizeof(unsigned long))];
    CPU_SET_S((size_t)cpu, sizeof words, (cpu_set_t *)words);
    if (sched_setaffinity(0, sizeof words, (cpu_set_t *)words) != 0)
        fail("cannot run on CPU %d: %s; it is offline or not allowed to this job", cpu,
             strerror(errno));
}

struct answering {
    int cpu;
    long first, trips;
};

static void *answer(void *argument)
{
    const struct answering *asked = argument;
    pin(asked->cpu);
    for (long trip = asked->first; trip < asked->first + asked->trips; trip++) {
        while (atomic_load_explicit(&line.turn, memory_order_acquire) != 2 * trip + 1)
            ;
        atomic_store_explicit(&line.turn, 2 * trip + 2, memory_order_release);
    }
    return NULL;
}

static void print_distance(int core, int other_core, int trials)
{
    static long trip; /* the next one: the line goes on where the pair before left it */
    const int cores[2] = {core, other_core};
    struct answering asked = {other_core, trip, (long)trials * ROUND_TRIPS};
    double best = 0, begun = now();
    pthread_t other;
    if (pthread_create(&other, NULL, answer, &asked) != 0)
        fail("cannot start a thread: %s", strerror(errno));
    pin(core);
    begun = now();
    for (int trial = 0; trial < trials; trial++) {
        double start = now();
        for (int k = 0; k < ROUND_TRIPS; k++, trip++) {
            atomic_store_explicit(&line.turn, 2 * trip + 1, memory_order_release);
            while (atomic_load_explicit(&line.turn, memory_order_acquire) != 2 * trip + 2)
                ;
        }
        double each = (now() - start) / ROUND_TRIPS;
        best = trial == 0 || each < best ? each : best;
    }
    double seconds = now() - begun;
    pthread_join(other, NULL);
    print_measurement("core_distance", cores, 2, 0, seconds);
    printf(",\"round_trip_ns\":{\"best\":%.1f,\"mean\":%.1f}}\n", 1e9 * best,
           1e9 * seconds / (double)asked.trips);
}

int main(int argc, char **argv)
{
    static struct options options = {.trials = 60};
    long from_first = 0;
    const struct setting settings[] = {{"--from-first", &from_first}, {NULL, NULL}};
    parse_options(&options, argc, argv, settings);
    const int *cores = options.cores, last = options.core_count - 1;
    if (last == 0) {
        print_measurement("core_distance", cores, 1, 0, 1e-6);
        printf("}\n");
    }
    for (int i = from_first ? 1 : last; i > 0 && i <= last; i++)
        print_distance(cores[0], cores[i], options.trials);
    print_end();
    return 0;
}
