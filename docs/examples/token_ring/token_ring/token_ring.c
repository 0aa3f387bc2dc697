/* token_ring ROUNDS: pass 8 bytes around all ranks so often, and print the mean time of a round. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, rounds = argc == 2 ? atoi(argv[1]) : 0;
    long long token = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rounds < 1 || ranks < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    if (rank == 0)
        printf("# token_ring: %d processes, %d rounds\n", ranks, rounds);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_LONG_LONG, next, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(&token, 1, MPI_LONG_LONG, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) {
            token++;
            MPI_Send(&token, 1, MPI_LONG_LONG, next, 0, MPI_COMM_WORLD);
        }
    }
    double seconds = MPI_Wtime() - began;
    /* Every rank counts: a token that skipped one is short. */
    if (rank == 0)
        printf("token %lld\nround_us %.4f\n# end\n", token, 1e6 * seconds / rounds);
    MPI_Finalize();
    return 0;
}
