/* A slower MPI library, on purpose: some calls spin before they do their work. For the bench only.
 *
 *   mpicc -O2 -fPIC -shared -o libdelay.so delay.c
 *   mpirun … env LD_PRELOAD=<path>/libdelay.so CLUSTERGATE_DELAY_NS=20 <benchmark> …
 *
 * Whoever judges figures must see that these are slower: MPI_Send, MPI_Sendrecv and MPI_Allreduce
 * spin for so many nanoseconds, counted in steps of a loop that is timed at the start.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static long steps;

static void spin(long count)
{
    for (volatile long step = 0; step < count; step++)
        ;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

__attribute__((constructor)) static void calibrate(void)
{
    enum { STEPS = 200000, TRIALS = 7 };
    const char *asked = getenv("CLUSTERGATE_DELAY_NS");
    double best = 0;
    if (asked == NULL)
        return;
    for (int trial = 0; trial < TRIALS; trial++) {
        double start = now_ns();
        spin(STEPS);
        double each = (now_ns() - start) / STEPS;
        best = trial == 0 || each < best ? each : best;
    }
    steps = (long)(strtod(asked, NULL) / best);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    spin(steps);
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                 void *in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    spin(steps);
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag,
                         comm, status);
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    spin(steps);
    return PMPI_Allreduce(out, in, count, type, op, comm);
}
