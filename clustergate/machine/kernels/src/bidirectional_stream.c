/* The bandwidth of messages that pairs of processes send each other without a pause.
 *
 *   mpicc -O3 -o bidirectional_stream bidirectional_stream.c
 *   mpirun -np 2 ./bidirectional_stream [--largest-bytes 16777216] [--seconds 1]
 *
 * The processes of the first half call MPI_Sendrecv with those of the second half, again and again
 * for one second per message size. Told are the messages that all processes sent, and the longest
 * time that a process took: the bandwidth is all bytes sent, divided by it. After a batch of
 * messages a pair agrees whether the time is over, in a message that counts as time and not as
 * bytes.
 *
 * Send and receive buffers differ and stay in the caches. After each size what came last is
 * compared with what was sent.
 */
#include "mpi_kernel.h"

enum { TAG = 1, BATCHES_PER_SECOND = 200, LARGEST = 1 << 30 };

static unsigned char *outgoing, *incoming;

static unsigned char content(size_t i, int from)
{
    return (unsigned char)(i % 251 + (size_t)from + 1);
}

static void exchange(size_t bytes, int partner, long messages)
{
    for (long i = 0; i < messages; i++)
        MPI_Sendrecv(outgoing, (int)bytes, MPI_BYTE, partner, TAG, incoming, (int)bytes, MPI_BYTE,
                     partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What the process of the first half says holds for both. */
static long agreed(long mine, int partner)
{
    if (rank < partner)
        MPI_Send(&mine, 1, MPI_LONG, partner, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(&mine, 1, MPI_LONG, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return mine;
}

static void measure(size_t bytes, int partner, double seconds)
{
    for (size_t i = 0; i < bytes; i++) {
        outgoing[i] = content(i, rank);
        incoming[i] = 0;
    }
    enum { TRIAL_MESSAGES = 4 };
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(bytes, partner, 1);
    double start = now();
    exchange(bytes, partner, TRIAL_MESSAGES);
    double each = (now() - start) / TRIAL_MESSAGES + 1e-9;
    long batch = agreed((long)(1.0 / BATCHES_PER_SECOND / each) + 1, partner), messages = 0;
    double elapsed = 0, longest;
    long all;
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    do {
        exchange(bytes, partner, batch);
        messages += batch;
        elapsed = now() - start;
    } while (agreed(elapsed < seconds, partner));
    elapsed = now() - start;
    MPI_Reduce(&elapsed, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&messages, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < bytes; i++)
        if (incoming[i] != content(i, partner))
            fail("wrong result: byte %zu of %zu is %d where %d was sent; the MPI library or the "
                 "network is faulty",
                 i, bytes, incoming[i], content(i, partner));
    if (rank != 0)
        return;
    measurements_printed++;
    printf("{\"measurement\":\"bidirectional_stream\",\"bytes\":%zu,\"messages\":%ld,"
           "\"seconds\":%.6f}\n",
           bytes, all, longest);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double largest = 16777216, seconds = 1;
    const struct option options[] = {{"--largest-bytes", &largest, 1, NULL},
                                     {"--seconds", &seconds, 1e-6, NULL},
                                     {NULL, NULL, 0, NULL}};
    begin(&argc, &argv, "bidirectional_stream", options);
    if (processes % 2 != 0)
        fail("%d processes are no pairs: start an even number of them", processes);
    if (largest > LARGEST)
        fail("--largest-bytes takes up to %d", LARGEST);
    outgoing = memory((size_t)largest);
    incoming = memory((size_t)largest);
    int half = processes / 2;
    for (size_t bytes = 1; bytes <= (size_t)largest; bytes *= 2)
        measure(bytes, rank < half ? rank + half : rank - half, seconds);
    return end();
}
